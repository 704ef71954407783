import { type ResponseDeleted, ResponseInputItems } from '@gatehouse/contract';
import * as z from 'zod';
import type { ResponsesApi } from '../../../features/conversations/responses/api.ts';
import { AppError } from '../../../kernel/app-error.ts';
import type { HttpCall } from '../../http-call.ts';
import { parseQuery, wholeNumber } from '../../query.ts';
import { sendJson } from '../../reply.ts';

/** The routes below `/v1/responses/{id}`, for responses kept by `store`. */
export function createStoredResponseRoutes({ responses }: { readonly responses: ResponsesApi }): {
  readonly get: (call: HttpCall) => Promise<void>;
  readonly delete: (call: HttpCall) => Promise<void>;
  readonly inputItems: (call: HttpCall) => Promise<void>;
  readonly cancel: (call: HttpCall) => Promise<void>;
} {
  return {
    async get(call) {
      if (new URLSearchParams(call.search).get('stream') === 'true')
        throw new AppError('invalid_params', 'stream: a stored response is not streamed again; read it without', { param: 'stream' });
      sendJson(call, 200, await responses.get(idOf(call), call.context()));
    },
    async delete(call) {
      const id = idOf(call);
      await responses.delete(id, call.context());
      sendJson(call, 200, { id, object: 'response', deleted: true } satisfies z.output<ReturnType<typeof ResponseDeleted>>);
    },
    async inputItems(call) {
      const id = idOf(call);
      const { limit, order, after } = parseQuery(ItemsQuery, call);
      const kept = await responses.input(id, call.context());
      if (kept === undefined) throw new AppError('not_found', 'The input of this response was not kept: an earlier version made it');
      sendJson(call, 200, pageOf(ResponseInputItems().shape.data.parse(kept), { limit, order, after }));
    },
    async cancel(call) {
      await responses.get(idOf(call), call.context());
      throw new AppError(
        'invalid_params',
        'Only background responses can be cancelled, and there are none here; close the connection of one that streams',
      );
    },
  };
}

const ItemsQuery = z.strictObject({
  limit: wholeNumber(1, 100).default(20),
  order: z.enum(['asc', 'desc']).default('desc'),
  after: z.string().min(1).optional(),
});

function pageOf(items: ResponseInputItems['data'], { limit, order, after }: z.output<typeof ItemsQuery>): ResponseInputItems {
  const ordered = order === 'asc' ? items : items.toReversed();
  const begin = after === undefined ? 0 : ordered.findIndex((item) => item.id === after) + 1;
  if (after !== undefined && begin === 0) throw new AppError('not_found', `after: item not found: ${after}`, { param: 'after' });
  const data = ordered.slice(begin, begin + limit);
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: begin + limit < ordered.length,
  };
}

/** Returns the id as sent: our ids need no escapes. */
function idOf(call: HttpCall): string {
  const id = call.params['id'] ?? '';
  if (!/^resp_[0-9a-f-]{36}$/.test(id)) throw new AppError('not_found', 'Response not found');
  return id;
}
