import { Worker } from 'node:worker_threads';
import { once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import { type DeliveryReading, type DeliveryRequest, readDelivery } from './read-delivery.ts';

/** Larger bodies take too long to parse on the event loop. */
const inlineBytes = 524_288;
const resourceLimits = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 64, stackSizeMb: 4 };
const Answer = once(() =>
  z.union([
    z.strictObject({
      reading: z
        .strictObject({
          ruleId: z.string(),
          sessionKey: z.string(),
          message: z.string(),
          deliveryId: z.string().optional(),
          isPing: z.boolean(),
        })
        .optional(),
    }),
    z.strictObject({ refusal: z.strictObject({ code: z.enum(['parse_error', 'invalid_params']), message: z.string() }) }),
  ]),
);

/** Reads a delivery, a large one in its own thread; the body intake limits how many of those run concurrently. */
export async function readOffThread(request: DeliveryRequest, workerUrl?: URL): Promise<DeliveryReading | undefined> {
  if (request.body.length <= inlineBytes) return readDelivery(request);
  const worker = new Worker(workerUrl ?? defaultWorkerUrl(), { workerData: request, resourceLimits, env: {}, name: 'delivery' });
  const outcome = Promise.withResolvers<unknown>();
  const tooLarge = (cause?: unknown) =>
    outcome.reject(new AppError('payload_too_large', 'The payload is too large to read', cause === undefined ? {} : { cause }));
  worker.once('message', outcome.resolve);
  worker.once('error', tooLarge);
  worker.once('exit', () => tooLarge());
  try {
    const answer = Answer().parse(await outcome.promise);
    if ('refusal' in answer) throw new AppError(answer.refusal.code, answer.refusal.message);
    const { reading } = answer;
    return reading === undefined ? undefined : { ...reading, deliveryId: reading.deliveryId };
  } finally {
    await worker.terminate();
  }
}

/** URL of the worker; the bundle places it next to the server. */
function defaultWorkerUrl(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './delivery-worker.ts' : './delivery-worker.js', import.meta.url);
}
