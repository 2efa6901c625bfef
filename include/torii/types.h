/* SPDX-License-Identifier: Apache-2.0
 * Part of torii/torii.h, which includes it: the version, statuses, collectives, operations and types, and their names.
 */
#ifndef TORII_TYPES_H
#define TORII_TYPES_H

#include <stddef.h>

/* The version of this header; torii_version() is that of the library. */
#define TORII_VERSION_MAJOR 0
#define TORII_VERSION_MINOR 1
#define TORII_VERSION_PATCH 0
/* To compare: 0.1.0 is 100, 1.2.3 is 10203. */
#define TORII_VERSION_NUMBER (TORII_VERSION_MAJOR * 10000 + TORII_VERSION_MINOR * 100 + TORII_VERSION_PATCH)

#if defined(__GNUC__)
#define TORII_API __attribute__((visibility("default")))
#else
#define TORII_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct torii_context torii_context; /* one per process and job: engines, memory, peers */
typedef struct torii_team torii_team;       /* an ordered set of ranks with a topology */
typedef struct torii_request torii_request; /* a non-blocking or persistent operation */
typedef struct torii_region torii_region;   /* memory of the caller that a context knows */

typedef enum torii_status {
  TORII_OK = 0,
  TORII_INVALID_ARGUMENT = 1,
  TORII_NOT_REGISTERED = 2,
  TORII_MISMATCH = 3,
  TORII_UNSUPPORTED = 4,
  TORII_NO_RESOURCE = 5,
  TORII_TIMEOUT = 6,
  TORII_PEER_LOST = 7,
  TORII_ABORTED = 8,
  TORII_POISONED = 9,
  TORII_TRANSPORT = 10,
  TORII_INTERNAL = 11
} torii_status;

typedef enum torii_collective {
  TORII_BARRIER = 0,
  TORII_BROADCAST = 1,
  TORII_REDUCE = 2,
  TORII_ALLREDUCE = 3,
  TORII_ALL_GATHER = 4,
  TORII_REDUCE_SCATTER = 5,
  TORII_ALLTOALL = 6,
  TORII_SCATTER = 7,
  TORII_GATHER = 8,
  TORII_SCAN = 9,
  TORII_EXSCAN = 10
} torii_collective;

typedef enum torii_op {
  TORII_SUM = 0,
  TORII_PROD = 1,
  TORII_MIN = 2,
  TORII_MAX = 3,
  TORII_BAND = 4,
  TORII_BOR = 5,
  TORII_BXOR = 6,
  TORII_LAND = 7,
  TORII_LOR = 8,
  TORII_LXOR = 9,
  TORII_MINLOC = 10,
  TORII_MAXLOC = 11,
  TORII_USER = 12,
  TORII_AVG = 13,       /* the sum, divided once by the number of ranks; integers are truncated towards zero */
  TORII_PREMUL_SUM = 14 /* the sum of inputs, each multiplied by its own rank's torii_call.factor */
} torii_op;

/* The five from TORII_I16_I32 on are pairs for minloc and maxloc, laid out as the C struct {value; int32_t index;}.
 * docs/embedding.md, "Types and operations", describes truth values (a byte, of which 0 is false) and 8-bit floats. */
typedef enum torii_type {
  TORII_I8 = 0,
  TORII_U8 = 1,
  TORII_I16 = 2,
  TORII_U16 = 3,
  TORII_I32 = 4,
  TORII_U32 = 5,
  TORII_I64 = 6,
  TORII_U64 = 7,
  TORII_F16 = 8,
  TORII_BF16 = 9,
  TORII_F32 = 10,
  TORII_F64 = 11,
  TORII_CF32 = 12,
  TORII_CF64 = 13,
  TORII_I16_I32 = 14,
  TORII_I32_I32 = 15,
  TORII_I64_I32 = 16,
  TORII_F32_I32 = 17,
  TORII_F64_I32 = 18,
  TORII_BOOL = 19,
  TORII_FLOAT8_E4M3 = 20,
  TORII_FLOAT8_E5M2 = 21
} torii_type;

/* Bytes of one element; 0 for an unknown type. */
TORII_API size_t torii_type_bytes(torii_type type);
/* Names as programs and messages have them, such as "bf16", "sum" and "all_gather"; NULL for an unknown value. */
TORII_API const char* torii_type_name(torii_type type);
TORII_API const char* torii_op_name(torii_op op);
TORII_API const char* torii_collective_name(torii_collective collective);

#ifdef __cplusplus
}
#endif

#endif
