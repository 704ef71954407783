import type { ResponseDeleted } from '@gatehouse/contract';
import type * as z from 'zod';
import type { ResponsesApi } from '../../../features/responses/api.ts';
import { AppError } from '../../../kernel/app-error.ts';
import type { HttpCall } from '../../http-call.ts';
import { sendJson } from '../../reply.ts';

/** `GET` and `DELETE /v1/responses/{id}`: what `store` kept. */
export function createStoredResponseRoutes({ responses }: { readonly responses: ResponsesApi }): {
  readonly get: (call: HttpCall) => Promise<void>;
  readonly delete: (call: HttpCall) => Promise<void>;
} {
  return {
    async get(call) {
      sendJson(call, 200, await responses.get(idOf(call), call.context()));
    },
    async delete(call) {
      const id = idOf(call);
      await responses.delete(id, call.context());
      sendJson(call, 200, { id, object: 'response', deleted: true } satisfies z.output<typeof ResponseDeleted>);
    },
  };
}

/** As it was sent: an id of ours needs no escapes. */
function idOf(call: HttpCall): string {
  const id = call.params['id'] ?? '';
  if (!/^resp_[0-9a-f-]{36}$/.test(id)) throw new AppError('not_found', 'Response not found');
  return id;
}
