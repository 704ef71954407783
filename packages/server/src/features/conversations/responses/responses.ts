import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import { toCall } from '../../../kernel/db/operation.ts';
import type { Log } from '../../../kernel/log.ts';
import { repeat } from '../../../kernel/timers.ts';
import type { ModelMessage } from '../../../llm/model.ts';
import type { ResponsesApi } from './api.ts';
import { deleteResponse, findResponse, keepResponse, type Link, maxDepth, maxHistoryLength, pruneResponses, readChain } from './store.ts';

const dayMs = 86_400_000;

export interface Responses extends AsyncDisposable {
  readonly api: ResponsesApi;
}

/** Manages stored answers of `/v1/responses` (decisions §3); deletes expired ones at start and then daily. */
export function createResponses(deps: { readonly db: Db; readonly clock: Clock; readonly log: Log }): Responses {
  const { db, clock, log } = deps;
  const pruning = repeat({
    clock,
    everyMs: dayMs,
    firstMs: 0,
    async run() {
      await db.write(pruneResponses, { nowMs: clock.ageNow() });
    },
    onError: (error) => log.warn({ err: error }, 'Failed to delete expired responses'),
  });

  const asked = (id: string, call: CallContext) => ({ id, principalId: call.identity.principalId, nowMs: clock.ageNow() });

  async function find(id: string, call: CallContext) {
    const row = await db.read(findResponse, asked(id, call));
    if (row === undefined || !reaches(row.agentId, call)) throw new AppError('not_found', `Response not found: ${id}`);
    return row;
  }

  const api: ResponsesApi = {
    keepCall: (row) => toCall(keepResponse, row),
    async history(id, call) {
      const links = await db.read(readChain, asked(id, call));
      const last = links.at(-1);
      if (last === undefined || links.some((link) => !reaches(link.agentId, call)))
        throw new AppError('not_found', `Previous response not found: ${id}`, { param: 'previous_response_id' });
      refuseTooLong(links);
      if (last.previousId !== null)
        throw new AppError('not_found', `Previous response not found: ${last.previousId}, which ${id} follows, was deleted`, {
          param: 'previous_response_id',
        });
      // Only the route writes these columns, from values of these types.
      const oldestFirst = links.toReversed();
      return {
        system: oldestFirst.flatMap((link) => JSON.parse(link.systemJson) as string[]),
        messages: oldestFirst.flatMap((link) => JSON.parse(link.messagesJson) as ModelMessage[]),
      };
    },
    async get(id, call) {
      return JSON.parse((await find(id, call)).bodyJson) as Record<string, unknown>;
    },
    async input(id, call) {
      const { inputJson } = await find(id, call);
      return inputJson == null ? undefined : (JSON.parse(inputJson) as Record<string, unknown>[]);
    },
    async delete(id, call) {
      await find(id, call);
      await db.write(deleteResponse, { id, principalId: call.identity.principalId });
    },
  };

  return {
    api,
    [Symbol.asyncDispose]: () => pruning[Symbol.asyncDispose](),
  };
}

function reaches(agentId: string, { identity }: CallContext): boolean {
  return identity.agents === undefined || identity.agents.includes(agentId);
}

function refuseTooLong(links: readonly Link[]): void {
  const length = links.reduce((sum, link) => sum + link.systemJson.length + link.messagesJson.length, 0);
  if (links.length > maxDepth || length > maxHistoryLength)
    throw new AppError(
      'invalid_params',
      `The history of previous_response_id has more than ${maxDepth} responses or ${maxHistoryLength} characters`,
      {
        param: 'previous_response_id',
      },
    );
}
