import { routes, type WebhookReceived } from '@gatehouse/contract';
import type * as z from 'zod';
import type { WebhooksApi } from '../../features/unattended/webhooks/api.ts';
import { AppError } from '../../kernel/app-error.ts';
import { readBody } from '../body.ts';
import type { HttpCall } from '../http-call.ts';
import { sendJson } from '../reply.ts';

/** Senders of webhooks are machines on good lines; a slower one holds a slot that others need. */
const wholeMs = 10_000;
/** Before its last byte anybody could be sending a large body: a slow sender must not block the others. */
const largeBytesPerSec = 1_048_576;

/** `POST /hooks/webhook` and `POST /hooks/{path}` (http-gateway.md §4.8): 200 once the delivery is stored. */
export function createHookRoutes({ webhooks }: { readonly webhooks: WebhooksApi }) {
  const receive = async (call: HttpCall, path: string): Promise<void> => {
    const { search, remoteAddress, traceId, incoming } = call;
    let isSigned = false;
    let isStrict = false;
    try {
      const intake = webhooks.open({ path, headers: incoming.headersDistinct, search, remoteAddress, traceId });
      ({ isStrict } = intake);
      const received = await intake.receive(() =>
        readBody(call, intake.bodyLimit, intake.isLarge ? { wholeMs, bytesPerSec: largeBytesPerSec } : { wholeMs }),
      );
      ({ isSigned } = received);
      const answer: z.output<ReturnType<typeof WebhookReceived>> = { received: true, mapping: received.mapping };
      sendJson(call, 200, answer);
    } catch (error) {
      // It was valid JSON and well signed; only its fields are wrong.
      if (isStrict && error instanceof AppError && error.code === 'invalid_params') call.failureStatus = 422;
      throw error;
    } finally {
      if (!isSigned) call.charge?.();
    }
  };
  return {
    strict: (call: HttpCall): Promise<void> => receive(call, 'webhook'),
    mapped: (call: HttpCall): Promise<void> => receive(call, call.params['path'] ?? ''),
  };
}

/** Prefix of the routes in the contract; the configuration may override it. */
export const declaredHooksPath = routes.webhook.path.slice(0, routes.webhook.path.lastIndexOf('/'));
