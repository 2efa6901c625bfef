/* SPDX-License-Identifier: Apache-2.0
 * The component that Open MPI loads: parameters, and one module per communicator. */
#include "plugins/openmpi/coll_torii_openmpi.h"

#include <opal/mca/base/mca_base_var.h>
#include <stdlib.h>

#include "plugins/openmpi/coll_torii_attach.h"
#include "plugins/openmpi/coll_torii_report.h"
#include "plugins/openmpi/coll_torii_request.h"
#include "plugins/openmpi/coll_torii_slots.h"
#include "plugins/openmpi/coll_torii_staging.h"
#include "plugins/openmpi/coll_torii_state.h"

static int register_parameters(void);
static int open_component(void);
static int close_component(void);
static int init_query(bool progress_threads, bool threads);
static mca_coll_base_module_t* comm_query(struct ompi_communicator_t* comm, int* priority);

OMPI_MODULE_DECLSPEC mca_coll_base_component_2_0_0_t mca_coll_torii_component = {
    .collm_version = {MCA_COLL_BASE_VERSION_2_0_0, .mca_component_name = "torii",
                      MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
                      .mca_open_component = open_component, .mca_close_component = close_component,
                      .mca_register_component_params = register_parameters},
    .collm_data = {MCA_BASE_METADATA_PARAM_NONE},
    .collm_init_query = init_query,
    .collm_comm_query = comm_query};

static void register_text(const char* name, const char* what, char** place) {
  *place = NULL;
  (void)mca_base_component_var_register(&mca_coll_torii_component.collm_version, name, what, MCA_BASE_VAR_TYPE_STRING,
                                        NULL, 0, 0, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_ALL_EQ, place);
}

/* A team with its first calls costs 30 to 80 us with 2 ranks, and 100 to 500 with 4 on two CPUs (perf/programs --only
 * communicators). After so many short calls that is at most a tenth of the time that its group has taken, which loses
 * no program anything to speak of; a group that goes on wins it back (coll_torii_delay.h). */
#define DELAY 1000

static int register_parameters(void) {
  coll_torii_state_t* const own = &coll_torii_state;
  const mca_base_component_t* const version = &mca_coll_torii_component.collm_version;
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
  own->delay = -1;
  (void)mca_base_component_var_register(
      version, "delay",
      "How many short calls of a communicator are left to others before torii makes a team for it; below 0: 0 if an "
      "algorithm or determinism is set, otherwise a measured number",
      MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_ALL_EQ, &own->delay);
  register_text("algorithm",
                "Algorithm of blocking operations, by torii's name; empty: TORII_ALGORITHM, or the fastest",
                &own->algorithm);
  register_text("determinism", "run or canonical: how much of the bits is promised; empty: TORII_DETERMINISM",
                &own->determinism);
  register_text("topology", "What the ranks of MPI_COMM_WORLD stand on, as torus:4x4x4; empty: TORII_TOPOLOGY",
                &own->topology);
  return OMPI_SUCCESS;
}

/* For a communicator for whose module there is no memory: other ranks have one, and would wait for this rank. A rank
 * without it does not announce itself. */
static coll_torii_module_t* spare;

/* If bits are promised, or an algorithm is tried, no blocking call may run below. */
static int default_delay(void) {
  const coll_torii_state_t* const own = &coll_torii_state;
  const char* const texts[] = {own->algorithm, own->determinism, getenv("TORII_ALGORITHM"),
                               getenv("TORII_DETERMINISM")};
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
    if (texts[i] != NULL && texts[i][0] != '\0') return 0;
  }
  return DELAY;
}

static int open_component(void) {
  coll_torii_state_t* const own = &coll_torii_state;
  if (own->delay < 0) own->delay = default_delay();
  own->stream = opal_output_open(NULL);
  opal_output_set_verbosity(own->stream, own->verbose);
  if (!own->enable) {
    coll_torii_say(1, "left out: coll_torii_enable is 0");
    return OMPI_SUCCESS;
  }
  spare = OBJ_NEW(coll_torii_module_t);
  if (spare != NULL) coll_torii_announce(&mca_coll_torii_component.collm_version);
  return OMPI_SUCCESS;
}

static int close_component(void) {
  coll_torii_state_t* const own = &coll_torii_state;
  if (spare != NULL) OBJ_RELEASE(spare);
  if (own->context != NULL) {
    coll_torii_say_counts();
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
  return coll_torii_state.enable ? OMPI_SUCCESS : OMPI_ERR_NOT_AVAILABLE;
}

/* Saves the slots of the components below and holds their modules, which Open MPI may release before this one. */
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

/* MPI_COMM_WORLD comes first, while nothing else runs: only its set-up may wait for other ranks. */
static int enable_module(mca_coll_base_module_t* base, struct ompi_communicator_t* comm) {
  coll_torii_module_t* const module = (coll_torii_module_t*)base;
  if (!save_below(module, comm->c_coll)) return OMPI_ERR_NOT_FOUND;
  if (comm != &ompi_mpi_comm_world.comm) return OMPI_SUCCESS;
  if (!coll_torii_peers_agree(&mca_coll_torii_component.collm_version, comm)) return OMPI_ERR_NOT_AVAILABLE;
  return coll_torii_make_context(comm, module);
}

static mca_coll_base_module_t* comm_query(struct ompi_communicator_t* comm, int* priority) {
  const coll_torii_state_t* const own = &coll_torii_state;
  *priority = own->priority;
  if (own->priority < 0 || OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2) return NULL;
  if (comm != &ompi_mpi_comm_world.comm && own->context == NULL) return NULL;
  coll_torii_module_t* module = OBJ_NEW(coll_torii_module_t);
  if (module == NULL) {
    module = spare;
    spare = NULL;
  }
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
