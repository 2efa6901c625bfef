/* SPDX-License-Identifier: Apache-2.0
 * Elements of MPI's types in memory. Inline, because descriptions of short calls use these functions. */
#pragma once

#include "plugins/openmpi/coll_torii_openmpi.h"

#include <opal/datatype/opal_convertor.h>
#include <stddef.h>

static inline bool coll_torii_is_empty(int count, const ompi_datatype_t* type) {
  return count == 0 || type->super.size == 0;
}

static inline ptrdiff_t coll_torii_extent(const ompi_datatype_t* type) { return type->super.ub - type->super.lb; }

/* Whether elements of the type lie one behind the other without holes. */
static inline bool coll_torii_is_plain(size_t count, const ompi_datatype_t* type) {
  /* Only "one" and "several" make a difference. */
  return opal_datatype_is_contiguous_memory_layout(&type->super, count > 1 ? 2 : 1);
}

/* The first byte of elements at `buffer`; never NULL, although MPI allows NULL for buffers without elements. */
static inline void* coll_torii_first_byte(const void* buffer, const ompi_datatype_t* type) {
  static char nothing[1];
  char* const first = (char*)buffer + type->super.true_lb; /* MPI_BOTTOM is NULL: only the sum is an address */
  return first == NULL ? nothing : first;
}

/* Prepares a convertor that packs elements from `memory` or unpacks them to it. The caller destructs it. */
static inline void coll_torii_make_convertor(opal_convertor_t* convertor, bool packs, const void* memory, size_t count,
                                             const ompi_datatype_t* type) {
  OBJ_CONSTRUCT(convertor, opal_convertor_t);
  if (packs) {
    opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &type->super, count, memory, 0, convertor);
  } else {
    opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &type->super, count, memory, 0, convertor);
  }
}

/* Moves the next `bytes` of the packed stream. The convertor may stop early, so it is called until all have moved. */
static inline void coll_torii_convert(opal_convertor_t* convertor, bool packs, char* packed, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    struct iovec piece = {.iov_base = packed + done, .iov_len = bytes - done};
    uint32_t pieces = 1;
    size_t moved = bytes - done;
    if (packs) {
      (void)opal_convertor_pack(convertor, &piece, &pieces, &moved);
    } else {
      (void)opal_convertor_unpack(convertor, &piece, &pieces, &moved);
    }
    if (moved == 0) break; /* the type does not hold that many elements */
    done += moved;
  }
}
