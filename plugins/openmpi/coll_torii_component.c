/* SPDX-License-Identifier: Apache-2.0
 * The component that Open MPI loads: parameters, and one module per communicator. */
#include <opal/mca/base/mca_base_var.h>
#include <stdarg.h>
#include <stdio.h>

#include "plugins/openmpi/coll_torii_request.h"

static int register_parameters(void);
static int open_component(void);
static int close_component(void);
static int init_query(bool progress_threads, bool threads);
static mca_coll_base_module_t* comm_query(struct ompi_communicator_t* comm, int* priority);

OMPI_MODULE_DECLSPEC coll_torii_component_t mca_coll_torii_component = {
    .super = {.collm_version = {MCA_COLL_BASE_VERSION_2_0_0, .mca_component_name = "torii",
                                MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
                                                      OMPI_RELEASE_VERSION),
                                .mca_open_component = open_component, .mca_close_component = close_component,
                                .mca_register_component_params = register_parameters},
              .collm_data = {MCA_BASE_METADATA_PARAM_NONE},
              .collm_init_query = init_query,
              .collm_comm_query = comm_query},
    .priority = 90,
    .stream = -1};

static const char* const kind_names[KIND_COUNT] = {
#define NAME(name, parameters, arguments) #name,
    COLL_TORII_OPERATIONS(NAME)
#undef NAME
};
/* Before the name and behind it, by form. */
static const char* const form_begins[FORM_COUNT] = {"", "i", ""};
static const char* const form_ends[FORM_COUNT] = {"", "", "_init"};

#define TEXT_BYTES 4096

void coll_torii_say(int level, const char* format, ...) {
  if (level > mca_coll_torii_component.verbose) return;
  char text[TEXT_BYTES];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  opal_output(mca_coll_torii_component.stream < 0 ? 0 : mca_coll_torii_component.stream, "coll/torii: %s", text);
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

static void register_text(const char* name, const char* what, char** place) {
  *place = NULL;
  (void)mca_base_component_var_register(&mca_coll_torii_component.super.collm_version, name, what,
                                        MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_5,
                                        MCA_BASE_VAR_SCOPE_ALL_EQ, place);
}

static int register_parameters(void) {
  coll_torii_component_t* const own = &mca_coll_torii_component;
  const mca_base_component_t* const version = &own->super.collm_version;
  own->enable = false;
  (void)mca_base_component_var_register(version, "enable", "Whether torii runs collectives (default: no)",
                                        MCA_BASE_VAR_TYPE_BOOL, NULL, 0, 0, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_ALL_EQ,
                                        &own->enable);
  own->priority = 90;
  (void)mca_base_component_var_register(version, "priority", "Priority of coll/torii, 0 to 100; below 0: never used",
                                        MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_ALL_EQ,
                                        &own->priority);
  own->verbose = 0;
  (void)mca_base_component_var_register(
      version, "verbose",
      "0: errors; 1: why torii is left out, and at the end which calls it ran; 2: communicators too",
      MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_LOCAL, &own->verbose);
  register_text("algorithm",
                "Algorithm of blocking operations, by torii's name; empty: TORII_ALGORITHM, or the fastest",
                &own->algorithm);
  register_text("determinism", "run or canonical: how much of the bits is promised; empty: TORII_DETERMINISM",
                &own->determinism);
  register_text("topology", "What the ranks of MPI_COMM_WORLD stand on, as torus:4x4x4; empty: TORII_TOPOLOGY",
                &own->topology);
  return OMPI_SUCCESS;
}

static int open_component(void) {
  coll_torii_component_t* const own = &mca_coll_torii_component;
  own->stream = opal_output_open(NULL);
  opal_output_set_verbosity(own->stream, own->verbose);
  if (own->enable) coll_torii_announce();
  return OMPI_SUCCESS;
}

/* An atomic addition waits on x86 for all stores before it, a signal on its way to a peer among them, so it is made
 * only where several threads may count. */
static void count_one(_Atomic int64_t* counter) {
  if (opal_using_threads()) {
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
  } else {
    const int64_t counted = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, counted + 1, memory_order_relaxed);
  }
}

void coll_torii_count_taken(coll_torii_form_t form, coll_torii_kind_t kind) {
  count_one(&mca_coll_torii_component.taken[form][kind]);
}

void coll_torii_count_left(coll_torii_form_t form, coll_torii_kind_t kind) {
  count_one(&mca_coll_torii_component.left[form][kind]);
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

static int close_component(void) {
  coll_torii_component_t* const own = &mca_coll_torii_component;
  if (own->context != NULL) {
    say_counts("taken", own->taken);
    say_counts("left", own->left);
    coll_torii_stop_progress();
    coll_torii_free_staging();
    if (torii_context_destroy(own->context) != TORII_OK) coll_torii_say(1, "%s", torii_last_error());
    own->context = NULL;
  }
  if (own->stream >= 0) opal_output_close(own->stream);
  own->stream = -1;
  return OMPI_SUCCESS;
}

static int init_query(bool progress_threads, bool threads) {
  (void)progress_threads;
  (void)threads;
  return mca_coll_torii_component.enable ? OMPI_SUCCESS : OMPI_ERR_NOT_AVAILABLE;
}

/* Takes the slots of those below, and holds their modules: at the end they are released in an order that is not ours.
 */
static bool save_below(coll_torii_module_t* module, const mca_coll_base_comm_coll_t* below) {
#define SAVE_ONE(name)                                                         \
  module->below_##name = below->coll_##name;                                   \
  module->below_##name##_module = below->coll_##name##_module;                 \
  if (module->below_##name == NULL || module->below_##name##_module == NULL) { \
    module->below_##name##_module = NULL;                                      \
    return false;                                                              \
  }                                                                            \
  OBJ_RETAIN(module->below_##name##_module);
#define SAVE(name, parameters, arguments) SAVE_ONE(name) SAVE_ONE(i##name) SAVE_ONE(name##_init)
  COLL_TORII_OPERATIONS(SAVE)
#undef SAVE
#undef SAVE_ONE
  return true;
}

/* MPI_COMM_WORLD comes first, while nothing else runs: only here may setting up wait for others. */
static int enable_module(mca_coll_base_module_t* base, struct ompi_communicator_t* comm) {
  coll_torii_module_t* const module = (coll_torii_module_t*)base;
  if (!save_below(module, comm->c_coll)) return OMPI_ERR_NOT_FOUND;
  if (comm != &ompi_mpi_comm_world.comm) return OMPI_SUCCESS;
  if (!coll_torii_peers_agree(comm)) return OMPI_ERR_NOT_AVAILABLE;
  return coll_torii_make_context(comm, module);
}

static mca_coll_base_module_t* comm_query(struct ompi_communicator_t* comm, int* priority) {
  const coll_torii_component_t* const own = &mca_coll_torii_component;
  *priority = own->priority;
  if (own->priority < 0 || OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2) return NULL;
  if (comm != &ompi_mpi_comm_world.comm && own->context == NULL) return NULL;
  coll_torii_module_t* const module = OBJ_NEW(coll_torii_module_t);
  if (module == NULL) return NULL;
  module->super.coll_module_enable = enable_module;
  coll_torii_set_blocking(&module->super);
  coll_torii_set_non_blocking(&module->super);
  coll_torii_set_persistent(&module->super);
  return &module->super;
}

static void construct_module(coll_torii_module_t* module) {
  memset((char*)module + sizeof(module->super), 0, sizeof(*module) - sizeof(module->super));
}

static void destruct_module(coll_torii_module_t* module) {
  coll_torii_forget_persistent(module);
  coll_torii_detach(module);
#define RELEASE_ONE(name) \
  if (module->below_##name##_module != NULL) OBJ_RELEASE(module->below_##name##_module);
#define RELEASE(name, parameters, arguments) RELEASE_ONE(name) RELEASE_ONE(i##name) RELEASE_ONE(name##_init)
  COLL_TORII_OPERATIONS(RELEASE)
#undef RELEASE
#undef RELEASE_ONE
}

OBJ_CLASS_INSTANCE(coll_torii_module_t, mca_coll_base_module_t, construct_module, destruct_module);
