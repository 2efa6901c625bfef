/* SPDX-License-Identifier: Apache-2.0
 * From MPI's operation and type to torii's kernels, or to a user function that calls Open MPI's. */
#include "plugins/openmpi/coll_torii_reduction.h"

#include "plugins/openmpi/coll_torii_elements.h"

/* The largest element that torii takes with a user function. */
#define USER_BYTES_MAX 4096

/* The classes of types for which MPI defines the same operations, as bits. */
typedef enum {
  CLASS_NONE = 0,
  CLASS_SIGNED = 1,
  CLASS_UNSIGNED = 2,
  CLASS_REAL = 4,
  CLASS_COMPLEX = 8,
  CLASS_TRUTH = 16,
  CLASS_BYTE = 32
} class_t;
#define CLASS_INTEGER (CLASS_SIGNED | CLASS_UNSIGNED)

/* By Open MPI's base type; other types have none. */
static const class_t classes[OMPI_OP_BASE_TYPE_MAX] = {
    [OMPI_OP_BASE_TYPE_INT8_T] = CLASS_SIGNED,
    [OMPI_OP_BASE_TYPE_INT16_T] = CLASS_SIGNED,
    [OMPI_OP_BASE_TYPE_INT32_T] = CLASS_SIGNED,
    [OMPI_OP_BASE_TYPE_INT64_T] = CLASS_SIGNED,
    [OMPI_OP_BASE_TYPE_INTEGER] = CLASS_SIGNED,
    [OMPI_OP_BASE_TYPE_INTEGER1] = CLASS_SIGNED,
    [OMPI_OP_BASE_TYPE_INTEGER2] = CLASS_SIGNED,
    [OMPI_OP_BASE_TYPE_INTEGER4] = CLASS_SIGNED,
    [OMPI_OP_BASE_TYPE_INTEGER8] = CLASS_SIGNED,
    [OMPI_OP_BASE_TYPE_LONG] = CLASS_SIGNED,
    [OMPI_OP_BASE_TYPE_UINT8_T] = CLASS_UNSIGNED,
    [OMPI_OP_BASE_TYPE_UINT16_T] = CLASS_UNSIGNED,
    [OMPI_OP_BASE_TYPE_UINT32_T] = CLASS_UNSIGNED,
    [OMPI_OP_BASE_TYPE_UINT64_T] = CLASS_UNSIGNED,
    [OMPI_OP_BASE_TYPE_UNSIGNED_LONG] = CLASS_UNSIGNED,
    [OMPI_OP_BASE_TYPE_FLOAT] = CLASS_REAL,
    [OMPI_OP_BASE_TYPE_DOUBLE] = CLASS_REAL,
    [OMPI_OP_BASE_TYPE_REAL] = CLASS_REAL,
    [OMPI_OP_BASE_TYPE_REAL4] = CLASS_REAL,
    [OMPI_OP_BASE_TYPE_REAL8] = CLASS_REAL,
    [OMPI_OP_BASE_TYPE_DOUBLE_PRECISION] = CLASS_REAL,
    [OMPI_OP_BASE_TYPE_C_FLOAT_COMPLEX] = CLASS_COMPLEX,
    [OMPI_OP_BASE_TYPE_C_DOUBLE_COMPLEX] = CLASS_COMPLEX,
    [OMPI_OP_BASE_TYPE_LOGICAL] = CLASS_TRUTH,
    [OMPI_OP_BASE_TYPE_BOOL] = CLASS_TRUTH,
    [OMPI_OP_BASE_TYPE_BYTE] = CLASS_BYTE,
};

/* Torii's integer of that many bytes. False if there is none. */
static bool integer_of(size_t bytes, bool is_signed, torii_type* type) {
  switch (bytes) {
    case 1:
      *type = is_signed ? TORII_I8 : TORII_U8;
      return true;
    case 2:
      *type = is_signed ? TORII_I16 : TORII_U16;
      return true;
    case 4:
      *type = is_signed ? TORII_I32 : TORII_U32;
      return true;
    case 8:
      *type = is_signed ? TORII_I64 : TORII_U64;
      return true;
    default:
      return false;
  }
}

static bool type_of(class_t class, size_t bytes, torii_type* type) {
  switch (class) {
    case CLASS_SIGNED:
      return integer_of(bytes, true, type);
    case CLASS_UNSIGNED:
    case CLASS_TRUTH: /* Fortran's and C's truth values are integers of 0 and 1 */
    case CLASS_BYTE:
      return integer_of(bytes, false, type);
    case CLASS_REAL:
      *type = bytes == 4 ? TORII_F32 : TORII_F64;
      return bytes == 4 || bytes == 8;
    case CLASS_COMPLEX:
      *type = bytes == 8 ? TORII_CF32 : TORII_CF64;
      return bytes == 8 || bytes == 16;
    case CLASS_NONE:
      break;
  }
  return false;
}

/* Torii has kernels for pairs whose layout is that of the C struct {value; int32_t}. */
static bool pair_of(int base, torii_type* type) {
  switch (base) {
    case OMPI_OP_BASE_TYPE_FLOAT_INT:
      *type = TORII_F32_I32;
      return true;
    case OMPI_OP_BASE_TYPE_DOUBLE_INT:
      *type = TORII_F64_I32;
      return true;
    case OMPI_OP_BASE_TYPE_LONG_INT:
      *type = TORII_I64_I32;
      return sizeof(long) == 8;
    case OMPI_OP_BASE_TYPE_2INT:
    case OMPI_OP_BASE_TYPE_2INTEGER:
      *type = TORII_I32_I32;
      return sizeof(int) == 4;
    case OMPI_OP_BASE_TYPE_SHORT_INT:
      *type = TORII_I16_I32;
      return true;
    default:
      return false;
  }
}

/* Torii's operations, and the classes for which MPI defines them; by Open MPI's operation. */
static const struct {
  torii_op own;
  int classes;
} operations[OMPI_OP_NUM_OF_TYPES] = {
    [OMPI_OP_MAX] = {TORII_MAX, CLASS_INTEGER | CLASS_REAL},
    [OMPI_OP_MIN] = {TORII_MIN, CLASS_INTEGER | CLASS_REAL},
    [OMPI_OP_SUM] = {TORII_SUM, CLASS_INTEGER | CLASS_REAL | CLASS_COMPLEX},
    [OMPI_OP_PROD] = {TORII_PROD, CLASS_INTEGER | CLASS_REAL | CLASS_COMPLEX},
    [OMPI_OP_LAND] = {TORII_LAND, CLASS_INTEGER | CLASS_TRUTH},
    [OMPI_OP_LOR] = {TORII_LOR, CLASS_INTEGER | CLASS_TRUTH},
    [OMPI_OP_LXOR] = {TORII_LXOR, CLASS_INTEGER | CLASS_TRUTH},
    [OMPI_OP_BAND] = {TORII_BAND, CLASS_INTEGER | CLASS_BYTE},
    [OMPI_OP_BOR] = {TORII_BOR, CLASS_INTEGER | CLASS_BYTE},
    [OMPI_OP_BXOR] = {TORII_BXOR, CLASS_INTEGER | CLASS_BYTE},
};

/* right = left op right, for elements side by side; MPI's functions find their first byte `lb` behind the address. */
static void fold(const coll_torii_user_t* user, const void* left, void* right, size_t count) {
  const ptrdiff_t lb = user->type->super.lb;
  ompi_op_reduce(user->op, (char*)left - lb, (char*)right - lb, count, user->type);
}

/* Torii folds into any of three places, MPI's functions only into their second argument, which is always the right
 * operand. */
static void combine(const void* left, const void* right, void* out, size_t count, void* data) {
  const coll_torii_user_t* const user = data;
  const size_t extent = (size_t)coll_torii_extent(user->type);
  if (out != left) {
    if (out != right) memcpy(out, right, count * extent);
    fold(user, left, out, count);
    return;
  }
  _Alignas(64) char some[USER_BYTES_MAX];
  const size_t at_once = sizeof(some) / extent;
  for (size_t done = 0; done < count; done += at_once) {
    const size_t now = count - done < at_once ? count - done : at_once;
    char* const place = (char*)out + done * extent;
    memcpy(some, (const char*)right + done * extent, now * extent);
    fold(user, place, some, now);
    memcpy(place, some, now * extent);
  }
}

/* Whether all bytes of an element lie between its bounds: it can then be moved as a whole, holes included. */
static bool is_movable(const ompi_datatype_t* type) {
  const opal_datatype_t* const layout = &type->super;
  const ptrdiff_t extent = coll_torii_extent(type);
  return layout->true_lb >= layout->lb && layout->true_ub <= layout->ub && extent > 0 && extent <= USER_BYTES_MAX;
}

bool coll_torii_map_reduction(coll_torii_operation_t* operation, ompi_op_t* op, ompi_datatype_t* type) {
  torii_call* const call = &operation->call;
  if (ompi_op_is_intrinsic(op)) {
    const int base = ompi_datatype_is_predefined(type) ? ompi_op_ddt_map[type->id] : -1;
    if (base < 0 || op->o_func.intrinsic.fns[base] == NULL) return false;
    if (op->op_type == OMPI_OP_MINLOC || op->op_type == OMPI_OP_MAXLOC) {
      call->op = op->op_type == OMPI_OP_MINLOC ? TORII_MINLOC : TORII_MAXLOC;
      if (pair_of(base, &call->type)) return true;
    } else {
      const class_t class = classes[base];
      call->op = operations[op->op_type].own;
      if ((operations[op->op_type].classes & class) != 0 && type_of(class, type->super.size, &call->type)) return true;
      if (op->op_type == OMPI_OP_REPLACE || op->op_type == OMPI_OP_NULL) return false;
    }
  }
  if (!is_movable(type)) return false;
  call->op = TORII_USER;
  call->user = combine;
  call->user_bytes = (size_t)coll_torii_extent(type);
  operation->user.op = op;
  operation->user.type = type;
  call->commutes = ompi_op_is_commute(op);
  return true;
}
