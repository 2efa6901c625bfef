/* SPDX-License-Identifier: Apache-2.0
 * Set-up of context and teams. */
#include "plugins/openmpi/coll_torii_attach.h"

#include <ompi/mca/pml/pml.h>
#include <opal/mca/btl/base/base.h>
#include <opal/mca/pmix/pmix.h>
#include <sched.h>
#include <stdlib.h>

#include "plugins/openmpi/coll_torii_delay.h"
#include "plugins/openmpi/coll_torii_report.h"
#include "plugins/openmpi/coll_torii_state.h"

#define RANKS_MAX 1024
/* A job has at most so many: without other memory, what all of them say in an exchange is on the stack, 2.3 MiB. */
#define JOB_RANKS_MAX 32768
/* MPI has no deadline: a rank may come to a call hours after the others. */
#define SETTING_TIMEOUT "TIMEOUT=1000000\n"
/* Address space for a thousand large communicators, or many more small ones. Each has up to three teams, whose outboxes
 * take most of it. */
#define SETTING_ARENA "ARENA=256G\n"

/* One set-up. In each exchange every rank says whether it exchanges the same number of bytes as all others, or has
 * failed. So no rank waits for one that failed alone, and all know the outcome. torii's last exchange tells the
 * outcome, and after that nothing fails on one rank alone. */
typedef struct setup_t {
  struct ompi_communicator_t* comm;
  coll_torii_module_t* module;
  struct frame_t* frames; /* room for those of all ranks */
  bool is_agreed;         /* on failure: nothing more may be exchanged */
} setup_t;

#define FAILED ((int64_t)-1)

static int gather(const setup_t* setup, const void* mine, void* all, int bytes) {
  coll_torii_module_t* const module = setup->module;
  const bool was_below = coll_torii_enter_below(module);
  const int status = module->below_allgather(mine, bytes, &ompi_mpi_byte.dt, all, bytes, &ompi_mpi_byte.dt, setup->comm,
                                             module->below_allgather_module);
  coll_torii_leave_below(module, was_below);
  return status;
}

/* One message of a rank. It contains the data as well if they are short, as all are unless settings differ: an exchange
 * is then one allgather. A rank that gets no memory for those of all ranks has them on the stack, since the others
 * would wait for it. */
#define FRAME_BYTES 64
typedef struct frame_t {
  int64_t says; /* bytes to exchange, or FAILED */
  char data[FRAME_BYTES];
} frame_t;

/* True if every rank says `says`; `all`, which may be NULL, then has the first bytes of all ranks' data. */
static bool all_say(setup_t* setup, int64_t says, const void* mine, void* all) {
  const int ranks = ompi_comm_size(setup->comm);
  const size_t bytes = says > 0 && says <= FRAME_BYTES ? (size_t)says : 0;
  frame_t frame = {.says = says};
  if (bytes != 0) memcpy(frame.data, mine, bytes);
  frame_t* const frames = setup->frames;
  bool equal = gather(setup, &frame, frames, (int)sizeof(frame)) == OMPI_SUCCESS;
  for (int rank = 0; equal && rank < ranks; ++rank) {
    equal = frames[rank].says == says;
    if (bytes != 0) memcpy((char*)all + bytes * (size_t)rank, frames[rank].data, bytes);
  }
  if (!equal) setup->is_agreed = true;
  return equal;
}

static int exchange(const void* mine, void* all, size_t bytes, void* data) {
  setup_t* const setup = data;
  if (bytes == 0) return 0;
  if (bytes > INT32_MAX || setup->is_agreed || !all_say(setup, (int64_t)bytes, mine, all)) return 1;
  return bytes <= FRAME_BYTES ? 0 : gather(setup, mine, all, (int)bytes);
}

bool coll_torii_gather(coll_torii_module_t* module, struct ompi_communicator_t* comm, const void* mine, void* all,
                       size_t bytes) {
  const setup_t setup = {.comm = comm, .module = module};
  return gather(&setup, mine, all, (int)bytes) == OMPI_SUCCESS;
}

/* Ends a set-up that has failed on this rank, perhaps alone. */
static void fail(setup_t* setup) {
  if (!setup->is_agreed) (void)all_say(setup, FAILED, NULL, NULL);
}

/* Writes the values that all ranks must share for this component to work; torii itself compares its own settings. */
static void describe(char* text, size_t bytes) {
  const coll_torii_state_t* const own = &coll_torii_state;
  memset(text, 0, bytes);
  snprintf(text, bytes, "%s;priority=%d;delay=%d;algorithm=%s;determinism=%s;topology=%s", torii_version(),
           own->priority, own->delay, own->algorithm, own->determinism, own->topology);
}

#define CARD_BYTES 256

void coll_torii_announce(const mca_base_component_t* component) {
  if (opal_pmix.put == NULL) return; /* ompi_info is no process of a job */
  char card[CARD_BYTES];
  describe(card, sizeof(card));
  int status = OPAL_SUCCESS;
  OPAL_MODEX_SEND(status, OPAL_PMIX_GLOBAL, component, card, sizeof(card));
  if (status != OPAL_SUCCESS) coll_torii_say(1, "cannot announce itself to the job (%d)", status);
}

bool coll_torii_peers_agree(const mca_base_component_t* component, struct ompi_communicator_t* comm) {
  char own[CARD_BYTES];
  describe(own, sizeof(own));
  for (int rank = 0; rank < ompi_comm_size(comm); ++rank) {
    const ompi_proc_t* const proc = ompi_comm_peer_lookup(comm, rank);
    char* card = NULL;
    size_t bytes = 0;
    int status = OPAL_SUCCESS;
    OPAL_MODEX_RECV(status, component, &proc->super.proc_name, (void**)&card, &bytes);
    const bool equal = status == OPAL_SUCCESS && bytes == sizeof(own) && memcmp(card, own, sizeof(own)) == 0;
    if (!equal) {
      coll_torii_say(1, "rank %d has no coll/torii of the same version and parameters ('%.200s' here, '%.200s' there)",
                     rank, own, status == OPAL_SUCCESS && bytes == sizeof(own) ? card : "none");
    }
    free(card);
    if (!equal) return false;
  }
  return true;
}

/* Whether a part of a message has moved, which opal_progress() does not say. These functions are among those that it
 * calls. */
static bool moves_messages(void) {
  int events = mca_pml.pml_progress == NULL ? 0 : mca_pml.pml_progress();
  mca_btl_base_selected_module_t* one = NULL;
  OPAL_LIST_FOREACH(one, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t) {
    if (one->btl_component->btl_progress != NULL) events += one->btl_component->btl_progress();
  }
  return events > 0;
}

#define LOOKS_MOST 64
#define LOOKS_IN_VAIN 8

/* One look where nothing is under way. The parts of a message follow one another soon, so while some move, and for a
 * few looks after that, this goes on to look: a thread that waits in torii would sleep instead. The other end may need
 * this CPU for its part. There is a limit, since what torii waits for may have come meanwhile. */
static void idle(void* unused) {
  (void)unused;
  int in_vain = LOOKS_IN_VAIN - 1;
  for (int looks = 0; looks < LOOKS_MOST; ++looks) {
    in_vain = moves_messages() ? 0 : in_vain + 1;
    if (in_vain == LOOKS_IN_VAIN) break;
    if (in_vain != 0) sched_yield();
  }
  opal_progress();
}

int coll_torii_make_context(struct ompi_communicator_t* world, coll_torii_module_t* module) {
  const int ranks = ompi_comm_size(world);
  if (ranks > JOB_RANKS_MAX) {
    coll_torii_say(1, "left out of this job: it has %d ranks, and at most %d are served", ranks, JOB_RANKS_MAX);
    return OMPI_ERR_NOT_AVAILABLE;
  }
  frame_t* const frames = malloc((size_t)ranks * sizeof(*frames));
  frame_t on_stack[frames == NULL ? ranks : 1];
  setup_t setup = {.comm = world, .module = module, .frames = frames == NULL ? on_stack : frames};
  char settings[128] = "";
  if (getenv("TORII_TIMEOUT") == NULL) strcat(settings, SETTING_TIMEOUT);
  if (getenv("TORII_ARENA") == NULL) strcat(settings, SETTING_ARENA);
  torii_context_options options = {.size = sizeof(options),
                                   .rank = ompi_comm_rank(world),
                                   .ranks = ranks,
                                   .exchange = exchange,
                                   .exchange_data = &setup,
                                   .settings = settings,
                                   .idle = idle};
  /* Open MPI sets this at the end of MPI_Init only. Without it, ranks that share CPUs would wait in every exchange
   * until the time slices of others end. */
  const bool yields = opal_progress_set_yield_when_idle(true);
  const int64_t begin = coll_torii_now_ns();
  const torii_status status = torii_context_create(&options, &coll_torii_state.context);
  if (status != TORII_OK) fail(&setup);
  coll_torii_state.context_ns = coll_torii_now_ns() - begin;
  free(frames);
  (void)opal_progress_set_yield_when_idle(yields);
  if (status == TORII_OK) return OMPI_SUCCESS;
  coll_torii_say(0, "left out of this job: no context (%s)", torii_last_error());
  return OMPI_ERR_NOT_AVAILABLE;
}

/* False if a member belongs to another job; equal on all members. */
static bool is_within_job(struct ompi_communicator_t* comm) {
  for (int rank = 0; rank < ompi_comm_size(comm); ++rank) {
    if (ompi_comm_peer_lookup(comm, rank)->super.proc_name.jobid != OPAL_PROC_MY_NAME.jobid) return false;
  }
  return true;
}

static const char* text_or_null(const char* text) { return text == NULL || text[0] == '\0' ? NULL : text; }

/* The members as ranks of the context. True if all are on one node, which all of them know. */
static bool list_members(struct ompi_communicator_t* comm, int* members) {
  const torii_context* const context = coll_torii_state.context;
  bool on_one_node = true;
  for (int rank = 0; rank < ompi_comm_size(comm); ++rank) {
    members[rank] = (int)ompi_comm_peer_lookup(comm, rank)->super.proc_name.vpid;
    on_one_node = on_one_node && torii_context_node(context, members[rank]) == torii_context_node(context, members[0]);
  }
  return on_one_node;
}

/* Members on one node found the team by a number. The founding lies within a call of the communicator, on each of them.
 * Open MPI gives its id to another communicator only after each member of that one has found the id free in its own
 * table, hence has ended all calls of the old communicator. So any two ranks found the teams of one number in the same
 * order, as torii asks. A team that outlives its communicator, for requests, does not matter. */
static uint64_t number_of(const struct ompi_communicator_t* comm, coll_torii_team_t kind) {
  return (uint64_t)comm->c_contextid * TEAM_COUNT + (uint64_t)kind + 1;
}

static bool make_team(setup_t* setup, coll_torii_team_t kind, const int* members, bool on_one_node) {
  const coll_torii_state_t* const own = &coll_torii_state;
  const int ranks = ompi_comm_size(setup->comm);
  torii_team_options options = {.size = sizeof(options),
                                .algorithm = "auto",
                                .topology = "auto",
                                .determinism = "canonical",
                                .members = members,
                                .member_count = ranks};
  if (on_one_node) {
    options.number = number_of(setup->comm, kind);
  } else {
    options.exchange = exchange;
    options.exchange_data = setup;
  }
  if (kind == TEAM_BLOCKING) {
    options.algorithm = text_or_null(own->algorithm);
    options.determinism = text_or_null(own->determinism);
    /* The torus is that of the job; a part of it is a node here. */
    if (ranks == torii_context_ranks(own->context)) options.topology = text_or_null(own->topology);
    /* One call after the other: a second channel would only spread them over more lines of memory. */
    options.channels = 1;
  }
  const torii_status status = torii_team_create(own->context, &options, &setup->module->teams[kind]);
  if (status != TORII_OK && setup->is_agreed) {
    coll_torii_say(1, "communicator %u is left to others: a member could not make its team", setup->comm->c_contextid);
  } else if (status != TORII_OK) {
    coll_torii_say(status == TORII_NO_RESOURCE ? 1 : 0, "communicator %u is left to others: %s",
                   setup->comm->c_contextid, torii_last_error());
  }
  return status == TORII_OK;
}

/* By coll_torii_team_t. */
static const char* const names[TEAM_COUNT] = {"blocking", "background", "persistent"};

static void destroy_team(coll_torii_module_t* module, coll_torii_team_t kind) {
  (void)torii_team_destroy(module->teams[kind]);
  module->teams[kind] = NULL;
}

/* Makes a team on all members, or on none. All have the same members, and all ranks of a job have a context or none
 * has. A rank without memory takes part all the same, with room on its stack. */
static bool found_team(coll_torii_module_t* module, struct ompi_communicator_t* comm, coll_torii_team_t kind) {
  const int ranks = ompi_comm_size(comm);
  if (coll_torii_state.context == NULL || ranks > RANKS_MAX || !is_within_job(comm)) return false;
  int members[ranks];
  const bool on_one_node = list_members(comm, members);
  if (kind == TEAM_PERSISTENT) module->offers = malloc((size_t)ranks * sizeof(*module->offers));
  setup_t setup = {.comm = comm, .module = module};
  if (on_one_node) return make_team(&setup, kind, members, true);
  frame_t* const frames = malloc((size_t)ranks * sizeof(*frames));
  frame_t on_stack[frames == NULL ? ranks : 1];
  setup.frames = frames == NULL ? on_stack : frames;
  const bool made = make_team(&setup, kind, members, false);
  if (!made) fail(&setup);
  free(frames);
  return made;
}

static void make_kind(coll_torii_module_t* module, struct ompi_communicator_t* comm, coll_torii_team_t kind) {
  const int64_t begin = coll_torii_now_ns();
  const bool made = found_team(module, comm, kind);
  atomic_fetch_add_explicit(&coll_torii_state.team_ns, coll_torii_now_ns() - begin, memory_order_relaxed);
  atomic_fetch_add_explicit(&coll_torii_state.teams, made, memory_order_relaxed);
  module->states[kind] = made ? STATE_ATTACHED : STATE_FAILED;
  if (!made) return;
  coll_torii_say(2, "communicator %u of %d ranks: %s team made", comm->c_contextid, ompi_comm_size(comm), names[kind]);
}

torii_team* coll_torii_attach(coll_torii_module_t* module, struct ompi_communicator_t* comm, coll_torii_team_t kind) {
  if (module->states[kind] == STATE_NEW) make_kind(module, comm, kind);
  return module->states[kind] == STATE_ATTACHED ? module->teams[kind] : NULL;
}

void coll_torii_detach(coll_torii_module_t* module) {
  for (int kind = TEAM_COUNT - 1; kind >= 0; --kind) destroy_team(module, kind);
  free(module->offers);
  module->offers = NULL;
}
