/* SPDX-License-Identifier: Apache-2.0
 * Sums many short vectors as one call, in a group, in C. Run: torii-run -n 4 -- group_c */
#include <stdio.h>
#include <torii/torii.h>

static int failed(torii_status status) {
  if (status != TORII_OK) fprintf(stderr, "%s: %s\n", torii_status_name(status), torii_last_error());
  return status != TORII_OK;
}

int main(void) {
  static float tensors[100][64];
  torii_context* context = NULL;
  torii_team* team = NULL;
  if (failed(torii_context_create(NULL, &context)) || failed(torii_team_create(context, NULL, &team))) return 1;
  const int ranks = torii_team_ranks(team);
  for (int i = 0; i < 100; ++i) tensors[i][0] = (float)(i + torii_team_rank(team));
  if (failed(torii_group_begin(team))) return 1;
  for (int i = 0; i < 100; ++i) {
    /* Only joins. A call that is refused refuses the group, and torii_group_end says so again. */
    (void)torii_allreduce(team, tensors[i], tensors[i], (size_t)(i % 64) + 1, TORII_F32, TORII_SUM);
  }
  if (failed(torii_group_end(team))) return 1;
  for (int i = 0; i < 100; ++i) {
    if (tensors[i][0] != (float)(ranks * i + ranks * (ranks - 1) / 2)) return 1;
  }
  if (torii_team_rank(team) == 0) printf("100 tensors are summed on %d ranks\n", ranks);
  return failed(torii_team_destroy(team)) || failed(torii_context_destroy(context));
}
