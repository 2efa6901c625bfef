/* SPDX-License-Identifier: Apache-2.0
 * From MPI's operation and type to torii's kernels, or to a user function that calls Open MPI's. */
#include "plugins/openmpi/coll_torii_reduction.h"

#include "plugins/openmpi/coll_torii_elements.h"

/* The largest element that torii takes with a user function. */
#define USER_BYTES_MAX 4096

typedef enum { CLASS_NONE, CLASS_SIGNED, CLASS_UNSIGNED, CLASS_REAL, CLASS_COMPLEX, CLASS_TRUTH, CLASS_BYTE } class_t;

static class_t class_of(int base) {
  switch (base) {
    case OMPI_OP_BASE_TYPE_INT8_T:
    case OMPI_OP_BASE_TYPE_INT16_T:
    case OMPI_OP_BASE_TYPE_INT32_T:
    case OMPI_OP_BASE_TYPE_INT64_T:
    case OMPI_OP_BASE_TYPE_INTEGER:
    case OMPI_OP_BASE_TYPE_INTEGER1:
    case OMPI_OP_BASE_TYPE_INTEGER2:
    case OMPI_OP_BASE_TYPE_INTEGER4:
    case OMPI_OP_BASE_TYPE_INTEGER8:
    case OMPI_OP_BASE_TYPE_LONG:
      return CLASS_SIGNED;
    case OMPI_OP_BASE_TYPE_UINT8_T:
    case OMPI_OP_BASE_TYPE_UINT16_T:
    case OMPI_OP_BASE_TYPE_UINT32_T:
    case OMPI_OP_BASE_TYPE_UINT64_T:
    case OMPI_OP_BASE_TYPE_UNSIGNED_LONG:
      return CLASS_UNSIGNED;
    case OMPI_OP_BASE_TYPE_FLOAT:
    case OMPI_OP_BASE_TYPE_DOUBLE:
    case OMPI_OP_BASE_TYPE_REAL:
    case OMPI_OP_BASE_TYPE_REAL4:
    case OMPI_OP_BASE_TYPE_REAL8:
    case OMPI_OP_BASE_TYPE_DOUBLE_PRECISION:
      return CLASS_REAL;
    case OMPI_OP_BASE_TYPE_C_FLOAT_COMPLEX:
    case OMPI_OP_BASE_TYPE_C_DOUBLE_COMPLEX:
      return CLASS_COMPLEX;
    case OMPI_OP_BASE_TYPE_LOGICAL:
    case OMPI_OP_BASE_TYPE_BOOL:
      return CLASS_TRUTH;
    case OMPI_OP_BASE_TYPE_BYTE:
      return CLASS_BYTE;
    default:
      return CLASS_NONE;
  }
}

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

/* False if torii has no such operation, or MPI does not define it for the class. */
static bool op_of(enum ompi_op_type op, class_t class, torii_op* own) {
  const bool counts = class == CLASS_SIGNED || class == CLASS_UNSIGNED;
  switch (op) {
    case OMPI_OP_MAX:
      *own = TORII_MAX;
      return counts || class == CLASS_REAL;
    case OMPI_OP_MIN:
      *own = TORII_MIN;
      return counts || class == CLASS_REAL;
    case OMPI_OP_SUM:
      *own = TORII_SUM;
      return counts || class == CLASS_REAL || class == CLASS_COMPLEX;
    case OMPI_OP_PROD:
      *own = TORII_PROD;
      return counts || class == CLASS_REAL || class == CLASS_COMPLEX;
    case OMPI_OP_LAND:
      *own = TORII_LAND;
      return counts || class == CLASS_TRUTH;
    case OMPI_OP_LOR:
      *own = TORII_LOR;
      return counts || class == CLASS_TRUTH;
    case OMPI_OP_LXOR:
      *own = TORII_LXOR;
      return counts || class == CLASS_TRUTH;
    case OMPI_OP_BAND:
      *own = TORII_BAND;
      return counts || class == CLASS_BYTE;
    case OMPI_OP_BOR:
      *own = TORII_BOR;
      return counts || class == CLASS_BYTE;
    case OMPI_OP_BXOR:
      *own = TORII_BXOR;
      return counts || class == CLASS_BYTE;
    default:
      return false;
  }
}

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
      const class_t class = class_of(base);
      if (op_of(op->op_type, class, &call->op) && type_of(class, type->super.size, &call->type)) return true;
      if (op->op_type == OMPI_OP_REPLACE || op->op_type == OMPI_OP_NULL) return false;
    }
  }
  if (!is_movable(type)) return false;
  call->op = TORII_USER;
  call->user = combine;
  call->user_bytes = (size_t)coll_torii_extent(type);
  operation->user.op = op;
  operation->user.type = type;
  operation->ordered = !ompi_op_is_commute(op);
  return true;
}
