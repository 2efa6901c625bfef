/* SPDX-License-Identifier: Apache-2.0
 * The context of the job and the teams of communicators, made through the collectives of the component below. */
#pragma once

#include "plugins/openmpi/coll_torii_module.h"

/* Tells the job this component's version and parameters. `component` is the name under which Open MPI knows it. */
void coll_torii_announce(const mca_base_component_t* component);
/* Whether all ranks have announced the same version and parameters. */
bool coll_torii_peers_agree(const mca_base_component_t* component, struct ompi_communicator_t* comm);
int coll_torii_make_context(struct ompi_communicator_t* world, coll_torii_module_t* module);
/* The team, made if the members can have it. The members exchange messages, so all call this in the same operation: a
 * blocking one or the making of a persistent one. NULL if there is no team. */
torii_team* coll_torii_attach(coll_torii_module_t* module, struct ompi_communicator_t* comm, coll_torii_team_t kind);
void coll_torii_detach(coll_torii_module_t* module);
/* Gathers over the component below. */
bool coll_torii_gather(coll_torii_module_t* module, struct ompi_communicator_t* comm, const void* mine, void* all,
                       size_t bytes);
