/* SPDX-License-Identifier: Apache-2.0
 * Messages, counts and error codes. */
#include "plugins/openmpi/coll_torii_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "plugins/openmpi/coll_torii_state.h"

#define TEXT_BYTES 4096

static const char* const kind_names[KIND_COUNT] = {
#define NAME(name, parameters, arguments) #name,
    COLL_TORII_OPERATIONS(NAME)
#undef NAME
};
static const char* const reason_names[REASON_COUNT] = {
    [REASON_BEFORE_TEAM] = "before the team", [REASON_NO_TEAM] = "no team",
    [REASON_REDUCTION] = "type or operation", [REASON_INTERNAL] = "perhaps Open MPI's own",
    [REASON_UNSERVED] = "not served",
};
/* Before the name and behind it, by form. */
static const char* const form_begins[FORM_COUNT] = {"", "i", ""};
static const char* const form_ends[FORM_COUNT] = {"", "", "_init"};

void coll_torii_say(int level, const char* format, ...) {
  if (level > coll_torii_state.verbose) return;
  char text[TEXT_BYTES];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  opal_output(coll_torii_state.stream < 0 ? 0 : coll_torii_state.stream, "coll/torii: %s", text);
}

typedef int64_t counts_t[FORM_COUNT][KIND_COUNT];

/* Adds a table to `sum`, and tells whether anything was counted in it. */
static bool add_counts(counts_t sum, _Atomic int64_t counts[FORM_COUNT][KIND_COUNT]) {
  bool any = false;
  for (int form = 0; form < FORM_COUNT; ++form) {
    for (int kind = 0; kind < KIND_COUNT; ++kind) {
      const int64_t count = counts[form][kind];
      sum[form][kind] += count;
      any = any || count != 0;
    }
  }
  return any;
}

/* Prints a table, with or without the kinds of which there was no call. */
static void say_counts(const char* what, counts_t counts, bool with_zeros) {
  char text[TEXT_BYTES - 64] = "";
  size_t used = 0;
  for (int form = 0; form < FORM_COUNT; ++form) {
    for (int kind = 0; kind < KIND_COUNT && used < sizeof(text); ++kind) {
      if (counts[form][kind] == 0 && !with_zeros) continue;
      used += (size_t)snprintf(text + used, sizeof(text) - used, " %s%s%s=%ld", form_begins[form], kind_names[kind],
                               form_ends[form], (long)counts[form][kind]);
    }
  }
  coll_torii_say(1, "%s%s", what, text);
}

void coll_torii_say_counts(void) {
  coll_torii_state_t* const own = &coll_torii_state;
  counts_t taken = {{0}};
  counts_t left = {{0}};
  (void)add_counts(taken, own->taken);
  for (int reason = 0; reason < REASON_COUNT; ++reason) (void)add_counts(left, own->left[reason]);
  say_counts("taken", taken, true);
  say_counts("left", left, true);
  for (int reason = 0; reason < REASON_COUNT; ++reason) {
    counts_t some = {{0}};
    char what[64];
    snprintf(what, sizeof(what), "left, %s:", reason_names[reason]);
    if (add_counts(some, own->left[reason])) say_counts(what, some, false);
  }
  coll_torii_say(1, "set-up: %ld teams in %ld us, the context in %ld us", (long)own->teams, (long)(own->team_ns / 1000),
                 (long)(own->context_ns / 1000));
}

int64_t coll_torii_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int coll_torii_error_of(torii_status status) {
  switch (status) {
    case TORII_OK:
      return OMPI_SUCCESS;
    case TORII_NO_RESOURCE:
      return OMPI_ERR_OUT_OF_RESOURCE;
    case TORII_UNSUPPORTED:
      return OMPI_ERR_NOT_SUPPORTED;
    case TORII_TIMEOUT:
      return OMPI_ERR_TIMEOUT;
    case TORII_PEER_LOST:
    case TORII_TRANSPORT:
      return OMPI_ERR_UNREACH;
    default:
      return OMPI_ERROR;
  }
}
