/* SPDX-License-Identifier: Apache-2.0
 * Sums a vector over all ranks, in C, in this program's own memory. Run: torii-run -n 4 -- allreduce_c */
#include <stdio.h>
#include <torii/torii.h>

static int failed(torii_status status) {
  if (status != TORII_OK) fprintf(stderr, "%s: %s\n", torii_status_name(status), torii_last_error());
  return status != TORII_OK;
}

int main(void) {
  static float input[1000], sum[1000];
  torii_context* context = NULL;
  torii_team* team = NULL;
  if (failed(torii_context_create(NULL, &context)) || failed(torii_team_create(context, NULL, &team))) return 1;
  const int ranks = torii_team_ranks(team);
  for (int i = 0; i < 1000; ++i) input[i] = (float)(torii_team_rank(team) + 1);
  if (failed(torii_allreduce(team, input, sum, 1000, TORII_F32, TORII_SUM))) return 1;
  for (int i = 0; i < 1000; ++i) {
    if (sum[i] != (float)(ranks * (ranks + 1) / 2)) return 1;
  }
  if (torii_team_rank(team) == 0) printf("every element is %g on %d ranks\n", sum[0], ranks);
  return failed(torii_team_destroy(team)) || failed(torii_context_destroy(context));
}
