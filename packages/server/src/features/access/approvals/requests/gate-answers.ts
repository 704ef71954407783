import type { GateAnswer } from '../../../../runtime/tool-gate.ts';
import type { Tool } from '../../../../runtime/tool.ts';
import { systemDecider } from '../deciders.ts';
import type { Asked } from '../store.ts';
import type { Outcome } from './waiting.ts';

/** Most pending requests, of one agent and of all. */
export const bounds = { perAgent: 100, inAll: 1000 };

/** Answers the model that a call did not run, and why. */
export function refused(why: string): GateAnswer {
  return { allowed: false, message: `Not run: ${why}`, unapproved: true };
}

/** Returns the answer after the wait of a call; `outcome` is undefined when its turn was stopped. */
export function answerOf(outcome: Outcome | undefined, tool: string): GateAnswer {
  if (outcome === undefined) return refused('the turn was stopped while the call waited for its approval');
  if (outcome.approved) return { allowed: true };
  if (outcome.by === systemDecider.timeout) return refused(`nobody approved this call of "${tool}" in time`);
  if (outcome.by === systemDecider.dropped) return refused(`the wait for an approval of this call of "${tool}" was ended by a stop or a reset`);
  return refused(`this call of "${tool}" was denied${outcome.reason === null ? '' : `: ${outcome.reason}`}`);
}

/** Returns the answer to a call that does not wait. */
export function answerTo(asked: Exclude<Asked, { readonly kind: 'waits' }>, tool: Tool): GateAnswer {
  switch (asked.kind) {
    case 'allowed':
      return { allowed: true };
    case 'denied':
      return answerOf({ approved: false, by: asked.by, reason: asked.reason }, tool.name);
    case 'full':
      return refused(`"${tool.name}" needs an approval, and too many calls wait for one (limit ${bounds[asked.limit]})`);
    case 'refused':
      return refused(`"${tool.name}" needs an approval, and unattended work may not wait for one (approvals.unattended: refuse)`);
    case 'changed':
      return refused(`${describeChange(tool)}, repeatedly`);
  }
}

/** Says that a file changed to which an approval was bound. */
export function describeChange({ name, runsPrograms }: Tool): string {
  const what =
    runsPrograms === undefined ? `a file that this call of "${name}" names` : `a file of the workspace, which this call of "${name}" could read,`;
  return `${what} was changed while the call waited for its approval`;
}
