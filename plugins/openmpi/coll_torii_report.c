/* SPDX-License-Identifier: Apache-2.0
 * Messages, counts and error codes. */
#include "plugins/openmpi/coll_torii_report.h"

#include <stdarg.h>
#include <stdio.h>

#include "plugins/openmpi/coll_torii_state.h"

#define TEXT_BYTES 4096

static const char* const kind_names[KIND_COUNT] = {
#define NAME(name, parameters, arguments) #name,
    COLL_TORII_OPERATIONS(NAME)
#undef NAME
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

static void say_counts(const char* what, _Atomic int64_t counts[FORM_COUNT][KIND_COUNT]) {
  char text[TEXT_BYTES - 64] = "";
  size_t used = 0;
  for (int form = 0; form < FORM_COUNT; ++form) {
    for (int kind = 0; kind < KIND_COUNT && used < sizeof(text); ++kind) {
      used += (size_t)snprintf(text + used, sizeof(text) - used, " %s%s%s=%ld", form_begins[form], kind_names[kind],
                               form_ends[form], (long)counts[form][kind]);
    }
  }
  coll_torii_say(1, "%s%s", what, text);
}

void coll_torii_say_counts(void) {
  say_counts("taken", coll_torii_state.taken);
  say_counts("left", coll_torii_state.left);
}

/* On x86 an atomic addition waits for all earlier stores, also for a signal to a peer. So the addition is atomic only
 * if several threads may count. */
static void count_one(_Atomic int64_t* counter) {
  if (opal_using_threads()) {
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
  } else {
    const int64_t counted = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, counted + 1, memory_order_relaxed);
  }
}

void coll_torii_count_taken(coll_torii_form_t form, coll_torii_kind_t kind) {
  count_one(&coll_torii_state.taken[form][kind]);
}

void coll_torii_count_left(coll_torii_form_t form, coll_torii_kind_t kind) {
  count_one(&coll_torii_state.left[form][kind]);
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
