/* SPDX-License-Identifier: Apache-2.0
 * Vectors with holes that torii moves part by part, straight between the caller's memory and its slots: elements are
 * packed and unpacked while other parts are on their way, and nothing stands in staging. */
#include <opal/datatype/opal_convertor.h>
#include <opal/datatype/opal_datatype_internal.h>
#include <stdlib.h>

#include "plugins/openmpi/coll_torii.h"

/* Below this, packing the whole takes less than the parts' bookkeeping. Of two ranks one reads what the other has
 * packed in place, which is quicker for longer (mpi_side_by_side, bcast_holes). */
#define LEAST_BYTES ((size_t)32768)
#define LEAST_BYTES_OF_TWO ((size_t)262144)
/* The largest element of which every part holds whole ones; larger are rare. */
#define UNIT_BYTES_MAX ((size_t)64)

struct coll_torii_access_t {
  opal_convertor_t load; /* from the caller's memory */
  opal_convertor_t store;
};

/* The bytes of each of the type's basic elements, where they are all equal and a power of two; otherwise 0. Only then
 * no part ends inside an element: a convertor that packs cannot cut one, and one that unpacks overruns its own buffer
 * where the element is larger than 16 bytes. */
static size_t unit_of(const ompi_datatype_t* type) {
  size_t unit = 0;
  for (int id = OPAL_DATATYPE_FIRST_TYPE; id < OPAL_DATATYPE_MAX_PREDEFINED; ++id) {
    if ((type->super.bdt_used >> id & 1) == 0) continue;
    const size_t bytes = opal_datatype_basicDatatypes[id]->size;
    if (unit != 0 && bytes != unit) return 0;
    unit = bytes;
  }
  return unit <= UNIT_BYTES_MAX && (unit & (unit - 1)) == 0 ? unit : 0;
}

bool coll_torii_moves_by_parts(size_t count, const ompi_datatype_t* type, int ranks) {
  return count * type->super.size >= (ranks > 2 ? LEAST_BYTES : LEAST_BYTES_OF_TWO) && unit_of(type) != 0;
}

/* Moves whole units. The convertor may stop short of the room that it is given. */
static void move_units(opal_convertor_t* convertor, bool loads, char* memory, size_t offset, size_t bytes) {
  (void)opal_convertor_set_position(convertor, &offset);
  for (size_t done = 0; done < bytes;) {
    struct iovec piece = {.iov_base = memory + done, .iov_len = bytes - done};
    uint32_t pieces = 1;
    size_t moved = bytes - done;
    if (loads) {
      (void)opal_convertor_pack(convertor, &piece, &pieces, &moved);
    } else {
      (void)opal_convertor_unpack(convertor, &piece, &pieces, &moved);
    }
    if (moved == 0) break; /* a count that its type does not hold */
    done += moved;
  }
}

/* Parts begin at multiples of 64 bytes, so between two units. */
static void load_part(void* to, size_t offset, size_t bytes, void* access) {
  move_units(&((coll_torii_access_t*)access)->load, true, to, offset, bytes);
}

static void store_part(const void* from, size_t offset, size_t bytes, void* access) {
  move_units(&((coll_torii_access_t*)access)->store, false, (char*)from, offset, bytes);
}

bool coll_torii_begin_access(coll_torii_operation_t* operation) {
  const coll_torii_move_t* const move = &operation->store;
  coll_torii_access_t* const access = malloc(sizeof(*access));
  if (access == NULL) return false;
  OBJ_CONSTRUCT(&access->load, opal_convertor_t);
  OBJ_CONSTRUCT(&access->store, opal_convertor_t);
  opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &move->type->super, move->count, move->memory, 0,
                                           &access->load);
  opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &move->type->super, move->count, move->memory, 0,
                                           &access->store);
  operation->access = access;
  operation->call.load = load_part;
  operation->call.store = store_part;
  operation->call.access_data = access;
  return true;
}

void coll_torii_end_access(coll_torii_operation_t* operation) {
  coll_torii_access_t* const access = operation->access;
  if (access == NULL) return;
  OBJ_DESTRUCT(&access->load);
  OBJ_DESTRUCT(&access->store);
  free(access);
  operation->access = NULL;
}
