/* SPDX-License-Identifier: Apache-2.0
 * Memory that stands in for the caller's, and what moves elements between the two. */
#include <opal/datatype/opal_convertor.h>
#include <pthread.h>
#include <stdlib.h>

#include "plugins/openmpi/coll_torii.h"

/* Staging is kept for the next call: taking memory from the arena costs a system call and cleared pages. */
#define KEPT_COUNT 16
#define KEPT_BYTES_EACH ((size_t)64 << 20)
#define LEAST_BYTES ((size_t)4096)

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static coll_torii_staging_t kept[KEPT_COUNT];

/* The least power of two not below `bytes`, so that what is kept fits many calls. */
static size_t rounded(size_t bytes) {
  size_t size = LEAST_BYTES;
  while (size < bytes) size *= 2;
  return size;
}

bool coll_torii_take_staging(coll_torii_staging_t* staging, size_t bytes) {
  const size_t wanted = rounded(bytes);
  pthread_mutex_lock(&kept_lock);
  for (int i = 0; i < KEPT_COUNT; ++i) {
    if (kept[i].memory == NULL || kept[i].bytes != wanted) continue;
    *staging = kept[i];
    kept[i].memory = NULL;
    pthread_mutex_unlock(&kept_lock);
    return true;
  }
  pthread_mutex_unlock(&kept_lock);
  staging->bytes = wanted;
  return torii_allocate(mca_coll_torii_component.context, wanted, &staging->memory) == TORII_OK;
}

void coll_torii_give_staging(coll_torii_staging_t* staging) {
  void* gone = staging->memory;
  if (gone == NULL) return;
  if (staging->bytes <= KEPT_BYTES_EACH) {
    pthread_mutex_lock(&kept_lock);
    /* An empty place, or that of something larger, so that seldom and large ones do not fill the places. */
    int place = -1;
    for (int i = 0; i < KEPT_COUNT && (place < 0 || kept[place].memory != NULL); ++i) {
      if (kept[i].memory == NULL || kept[i].bytes > staging->bytes) place = i;
    }
    if (place >= 0) {
      gone = kept[place].memory;
      kept[place] = *staging;
    }
    pthread_mutex_unlock(&kept_lock);
  }
  staging->memory = NULL;
  if (gone != NULL) (void)torii_free(mca_coll_torii_component.context, gone);
}

void coll_torii_free_staging(void) {
  for (int i = 0; i < KEPT_COUNT; ++i) {
    if (kept[i].memory != NULL) (void)torii_free(mca_coll_torii_component.context, kept[i].memory);
    kept[i].memory = NULL;
  }
}

void* coll_torii_plain(const void* buffer, size_t count, const ompi_datatype_t* type) {
  const int32_t some = count > 1 ? 2 : 1; /* only "one" and "several" make a difference */
  if (!opal_datatype_is_contiguous_memory_layout(&type->super, some)) return NULL;
  return (char*)buffer + type->super.true_lb;
}

/* The convertor may stop short of the room that it is given, so it is called until it says that it is done. */
void coll_torii_pack(const void* buffer, size_t count, const ompi_datatype_t* type, void* packed) {
  const size_t total = count * type->super.size;
  const char* const plain = coll_torii_plain(buffer, count, type);
  if (plain != NULL) {
    memmove(packed, plain, total);
    return;
  }
  opal_convertor_t convertor;
  OBJ_CONSTRUCT(&convertor, opal_convertor_t);
  opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &type->super, count, buffer, 0, &convertor);
  for (size_t done = 0; done < total;) {
    struct iovec piece = {.iov_base = (char*)packed + done, .iov_len = total - done};
    uint32_t pieces = 1;
    size_t bytes = total - done;
    (void)opal_convertor_pack(&convertor, &piece, &pieces, &bytes);
    if (bytes == 0) break; /* a count that its type does not hold */
    done += bytes;
  }
  OBJ_DESTRUCT(&convertor);
}

void coll_torii_unpack(const void* packed, size_t count, const ompi_datatype_t* type, void* buffer) {
  const size_t total = count * type->super.size;
  char* const plain = coll_torii_plain(buffer, count, type);
  if (plain != NULL) {
    memmove(plain, packed, total);
    return;
  }
  opal_convertor_t convertor;
  OBJ_CONSTRUCT(&convertor, opal_convertor_t);
  opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &type->super, count, buffer, 0, &convertor);
  for (size_t done = 0; done < total;) {
    struct iovec piece = {.iov_base = (char*)packed + done, .iov_len = total - done};
    uint32_t pieces = 1;
    size_t bytes = total - done;
    (void)opal_convertor_unpack(&convertor, &piece, &pieces, &bytes);
    if (bytes == 0) break;
    done += bytes;
  }
  OBJ_DESTRUCT(&convertor);
}

/* The staged result holds one packed block per rank; a block's own count may be less than the distance to the next. */
static void unpack_blocks(const coll_torii_operation_t* operation) {
  const ompi_datatype_t* const type = operation->target_type;
  const ptrdiff_t extent = type->super.ub - type->super.lb;
  for (int block = 0; block < operation->blocks; ++block) {
    char* const target = (char*)operation->target + extent * operation->block_places[block];
    const size_t offset =
        operation->block_offsets == NULL ? operation->block_bytes * (size_t)block : operation->block_offsets[block];
    const char* const source = (const char*)operation->result.memory + offset;
    coll_torii_unpack(source, (size_t)operation->block_counts[block], type, target);
  }
}

void coll_torii_keep_blocks(coll_torii_operation_t* operation) {
  if (operation->finish != FINISH_UNPACK_BLOCKS) return;
  const size_t count = (size_t)operation->blocks;
  int* const kept_blocks = malloc(2 * count * sizeof(*kept_blocks));
  if (kept_blocks == NULL) {
    operation->status = OMPI_ERR_OUT_OF_RESOURCE;
    return;
  }
  memcpy(kept_blocks, operation->block_counts, count * sizeof(*kept_blocks));
  memcpy(kept_blocks + count, operation->block_places, count * sizeof(*kept_blocks));
  operation->kept_blocks = kept_blocks;
  operation->block_counts = kept_blocks;
  operation->block_places = kept_blocks + count;
}

void coll_torii_finish(coll_torii_operation_t* operation) {
  switch (operation->finish) {
    case FINISH_NOTHING:
      break;
    case FINISH_UNPACK:
      coll_torii_unpack(operation->result.memory, operation->target_count, operation->target_type, operation->target);
      break;
    case FINISH_UNPACK_BLOCKS:
      unpack_blocks(operation);
      break;
    case FINISH_COPY_ELEMENTS:
      (void)ompi_datatype_copy_content_same_ddt(operation->target_type, operation->target_count, operation->target,
                                                operation->result.memory);
      break;
  }
  free(operation->kept_blocks);
  free(operation->lengths);
  operation->lengths = NULL;
  operation->kept_blocks = NULL;
  coll_torii_give_staging(&operation->input);
  coll_torii_give_staging(&operation->result);
}
