import { metricsContentType } from '../../kernel/metrics.ts';
import type { HttpCall } from '../http-call.ts';

/** `/metrics` in the Prometheus text format. */
export function createMetricsRoute(render: () => Promise<string>): (call: HttpCall) => Promise<void> {
  return async (call) => {
    const text = await render();
    call.setHeader('content-type', metricsContentType);
    call.setHeader('cache-control', 'no-store');
    call.setHeader('content-length', String(Buffer.byteLength(text)));
    call.writeHead(200);
    call.outgoing.end(text);
  };
}
