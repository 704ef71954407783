import { parentPort, workerData } from 'node:worker_threads';
import { AppError } from '../../../../kernel/app-error.ts';
import { type DeliveryRequest, readDelivery } from './read-delivery.ts';

/** Reads one large delivery and exits: parsing megabytes would block the event loop. */
const request: DeliveryRequest = workerData;
try {
  parentPort?.postMessage({ reading: readDelivery(request) });
} catch (error) {
  if (!(error instanceof AppError)) throw error;
  parentPort?.postMessage({ refusal: { code: error.code, message: error.message } });
}
