/* SPDX-License-Identifier: Apache-2.0
 * Vectors with holes that torii moves part by part. */
#include "plugins/openmpi/coll_torii_access.h"

#include <opal/datatype/opal_datatype_internal.h>
#include <stdlib.h>

#include "plugins/openmpi/coll_torii_elements.h"

/* Shorter vectors are packed as a whole, which takes less time than the bookkeeping of parts. With two ranks the limit
 * is higher, because one rank reads in place what the other has packed (mpi_side_by_side, bcast_holes). */
#define LEAST_BYTES ((size_t)32768)
#define LEAST_BYTES_OF_TWO ((size_t)262144)
/* The largest basic element for which every part holds whole elements; larger ones are rare. */
#define UNIT_BYTES_MAX ((size_t)64)

struct coll_torii_access_t {
  opal_convertor_t load; /* from the caller's memory */
  opal_convertor_t store;
};

/* The bytes of each of the type's basic elements if they are all equal and a power of two. 0 for other types, because a
 * part could end inside an element. A convertor cannot pack a part of an element, and it overruns its own buffer when
 * it unpacks a part of an element larger than 16 bytes. */
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

/* Parts begin at multiples of 64 bytes, hence between two units. */
static void load_part(void* to, size_t offset, size_t bytes, void* data) {
  coll_torii_access_t* const access = data;
  (void)opal_convertor_set_position(&access->load, &offset);
  coll_torii_convert(&access->load, true, to, bytes);
}

static void store_part(const void* from, size_t offset, size_t bytes, void* data) {
  coll_torii_access_t* const access = data;
  (void)opal_convertor_set_position(&access->store, &offset);
  coll_torii_convert(&access->store, false, (char*)from, bytes);
}

bool coll_torii_begin_access(coll_torii_operation_t* operation) {
  const coll_torii_move_t* const move = &operation->store;
  coll_torii_access_t* const access = malloc(sizeof(*access));
  if (access == NULL) return false;
  coll_torii_make_convertor(&access->load, true, move->memory, move->count, move->type);
  coll_torii_make_convertor(&access->store, false, move->memory, move->count, move->type);
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
