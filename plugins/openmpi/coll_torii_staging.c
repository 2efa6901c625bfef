/* SPDX-License-Identifier: Apache-2.0
 * Memory that replaces the caller's, and the moves of elements between the two. */
#include "plugins/openmpi/coll_torii_staging.h"

#include <opal/threads/mutex.h>
#include <stdlib.h>

#include "plugins/openmpi/coll_torii_access.h"
#include "plugins/openmpi/coll_torii_elements.h"
#include "plugins/openmpi/coll_torii_state.h"

/* Staging is kept for the next call: new memory of the arena costs a system call and cleared pages. */
#define KEPT_COUNT 16
#define KEPT_BYTES_EACH ((size_t)64 << 20)
#define LEAST_BYTES ((size_t)4096)

/* Locked only if the program has several threads: short calls get faster. */
static opal_mutex_t kept_lock = OPAL_MUTEX_STATIC_INIT;
static coll_torii_staging_t kept[KEPT_COUNT];

/* The least power of two not below `bytes`, so that kept staging fits many calls. */
static size_t rounded(size_t bytes) {
  size_t size = LEAST_BYTES;
  while (size < bytes) size *= 2;
  return size;
}

static bool take(coll_torii_staging_t* staging, size_t bytes) {
  const size_t wanted = rounded(bytes);
  OPAL_THREAD_LOCK(&kept_lock);
  for (int i = 0; i < KEPT_COUNT; ++i) {
    if (kept[i].memory == NULL || kept[i].bytes != wanted) continue;
    *staging = kept[i];
    kept[i].memory = NULL;
    OPAL_THREAD_UNLOCK(&kept_lock);
    return true;
  }
  OPAL_THREAD_UNLOCK(&kept_lock);
  staging->bytes = wanted;
  return torii_allocate(coll_torii_state.context, wanted, &staging->memory) == TORII_OK;
}

static void give(coll_torii_staging_t* staging) {
  void* gone = staging->memory;
  if (gone == NULL) return;
  if (staging->bytes <= KEPT_BYTES_EACH) {
    OPAL_THREAD_LOCK(&kept_lock);
    /* An empty place, or one with larger memory, so that rare large calls do not fill the places. */
    int place = -1;
    for (int i = 0; i < KEPT_COUNT && (place < 0 || kept[place].memory != NULL); ++i) {
      if (kept[i].memory == NULL || kept[i].bytes > staging->bytes) place = i;
    }
    if (place >= 0) {
      gone = kept[place].memory;
      kept[place] = *staging;
    }
    OPAL_THREAD_UNLOCK(&kept_lock);
  }
  staging->memory = NULL;
  if (gone != NULL) (void)torii_free(coll_torii_state.context, gone);
}

void coll_torii_free_staging(void) {
  for (int i = 0; i < KEPT_COUNT; ++i) {
    if (kept[i].memory != NULL) (void)torii_free(coll_torii_state.context, kept[i].memory);
    kept[i].memory = NULL;
  }
}

static void move_one(const void* memory, size_t count, const ompi_datatype_t* type, char* packed, bool to_staging) {
  const size_t bytes = count * type->super.size;
  if (coll_torii_is_plain(count, type)) {
    void* const first = coll_torii_first_byte(memory, type);
    memmove(to_staging ? packed : first, to_staging ? first : packed, bytes);
    return;
  }
  opal_convertor_t convertor;
  coll_torii_make_convertor(&convertor, to_staging, memory, count, type);
  coll_torii_convert(&convertor, to_staging, packed, bytes);
  OBJ_DESTRUCT(&convertor);
}

static void move_blocks(const coll_torii_move_t* move, char* staging, bool to_staging) {
  for (int block = 0; block < move->blocks; ++block) {
    const ompi_datatype_t* const type = move->types == NULL ? move->type : move->types[block];
    const ptrdiff_t unit = move->types == NULL ? coll_torii_extent(type) : 1;
    char* const memory = (char*)move->memory + unit * move->places[block];
    if (coll_torii_is_empty(move->counts[block], type)) continue;
    move_one(memory, (size_t)move->counts[block], type, staging + move->offsets[block], to_staging);
  }
}

static void move_all(const coll_torii_move_t* move, char* staging, bool to_staging) {
  switch (move->form) {
    case MOVE_NOTHING:
    case MOVE_PARTS:
      break;
    case MOVE_PACKED:
      move_one(move->memory, move->count, move->type, staging + move->offset, to_staging);
      break;
    case MOVE_BLOCKS:
      move_blocks(move, staging, to_staging);
      break;
    case MOVE_ELEMENTS: {
      /* Open MPI finds an element's first byte `lb` behind its address. */
      char* const elements = staging - move->type->super.lb;
      char* const target = to_staging ? elements : move->memory;
      char* const source = to_staging ? move->memory : elements;
      (void)ompi_datatype_copy_content_same_ddt(move->type, move->count, target, source);
      break;
    }
  }
}

static void* copied(char** place, const void* array, size_t bytes) {
  char* const copy = *place;
  memcpy(copy, array, bytes);
  *place += bytes;
  return copy;
}

void coll_torii_keep_arrays(coll_torii_operation_t* operation) {
  coll_torii_move_t* const moves[] = {&operation->load, &operation->store};
  const size_t each = sizeof(ompi_datatype_t*) + 2 * sizeof(int);
  size_t bytes = 0;
  for (int i = 0; i < 2; ++i) bytes += moves[i]->form == MOVE_BLOCKS ? each * (size_t)moves[i]->blocks : 0;
  if (bytes == 0) return;
  char* place = operation->kept = malloc(bytes);
  if (place == NULL) {
    operation->status = OMPI_ERR_OUT_OF_RESOURCE;
    return;
  }
  for (int i = 0; i < 2; ++i) {
    coll_torii_move_t* const move = moves[i];
    if (move->form != MOVE_BLOCKS) continue;
    const size_t blocks = (size_t)move->blocks;
    if (move->types != NULL) move->types = copied(&place, move->types, blocks * sizeof(ompi_datatype_t*));
    move->counts = copied(&place, move->counts, blocks * sizeof(int));
    /* Two arrays of int are as long as one of pointers: the next move's types are aligned. */
    move->places = copied(&place, move->places, blocks * sizeof(int));
  }
}

void coll_torii_acquire(coll_torii_operation_t* operation) {
  torii_call* const call = &operation->call;
  const bool taken = operation->status == OMPI_SUCCESS &&
                     (operation->input_bytes == 0 || take(&operation->input, operation->input_bytes)) &&
                     (operation->result_bytes == 0 || take(&operation->result, operation->result_bytes)) &&
                     (operation->store.form != MOVE_PARTS || coll_torii_begin_access(operation));
  if (!taken) {
    operation->status = OMPI_ERR_OUT_OF_RESOURCE;
    return;
  }
  if (operation->input_bytes != 0) call->input = operation->input.memory;
  if (operation->result_bytes != 0) call->result = operation->result.memory;
  if (operation->input_in_result) call->input = (char*)call->result + operation->own_offset;
  if (operation->result_in_input) call->result = (char*)call->input + operation->own_offset;
}

void coll_torii_load(coll_torii_operation_t* operation) {
  char* const staging = operation->loads_result ? operation->result.memory : operation->input.memory;
  if (operation->status == OMPI_SUCCESS) move_all(&operation->load, staging, true);
}

void coll_torii_store(coll_torii_operation_t* operation) {
  move_all(&operation->store, operation->result.memory, false);
}

void coll_torii_release(coll_torii_operation_t* operation) {
  coll_torii_end_access(operation);
  free(operation->kept);
  free(operation->lengths);
  operation->kept = NULL;
  operation->lengths = NULL;
  give(&operation->input);
  give(&operation->result);
}
