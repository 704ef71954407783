import { randomUUID } from 'node:crypto';
import { CountTokensRequest } from '@gatehouse/contract';
import type { TurnsApi } from '../../../features/conversations/turns/api.ts';
import { readJsonBody } from '../../body.ts';
import type { HttpCall } from '../../http-call.ts';
import { parseInput } from '../../parse-input.ts';
import { sendJson } from '../../reply.ts';
import { toMessageError } from './message-error.ts';
import { toInput } from './message-request.ts';

/** `POST /v1/messages/count_tokens`. */
export function createCountTokensRoute(deps: {
  readonly turns: Pick<TurnsApi, 'countInput'>;
  readonly bodyLimit: () => number;
}): (call: HttpCall) => Promise<void> {
  return async (call) => {
    const input = toInput(parseInput(CountTokensRequest(), await readJsonBody(call, deps.bodyLimit())));
    const tokens = await deps.turns.countInput({ ...input, completionId: `msg_${randomUUID()}` }, call.context()).catch((error: unknown) => {
      throw toMessageError(error);
    });
    sendJson(call, 200, { input_tokens: tokens });
  };
}
