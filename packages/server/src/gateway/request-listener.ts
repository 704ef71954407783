import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TransportMeter } from '../features/operations/observability/api.ts';
import type { Identity } from '../kernel/call-context.ts';
import type { Clock } from '../kernel/clock.ts';
import type { ClientAddress } from './address.ts';
import { methodLabel } from './admission.ts';
import { HttpCall } from './http-call.ts';
import type { OpenCalls } from './open-calls.ts';
import type { SocketGuard } from './socket-guard.ts';

export interface RequestListenerDeps {
  readonly addressOf: (incoming: IncomingMessage) => ClientAddress;
  readonly open: OpenCalls;
  readonly guard: Pick<SocketGuard, 'begin' | 'end'>;
  readonly clock: Clock;
  readonly meter?: Pick<TransportMeter, 'request'> | undefined;
  readonly serve: (call: HttpCall, address: ClientAddress) => Promise<void>;
  /** Called when a call is closed and no longer open. */
  readonly onClose: () => void;
}

/** How a request came in. */
export interface RequestOrigin {
  readonly expectsContinue?: boolean;
  readonly identity?: Identity;
  /** Over another server than the listener. */
  readonly elsewhere?: boolean;
}

/** Returns the listener that serves each request of node as a call, counted until its response is closed. */
export function createRequestListener({ addressOf, open, guard, clock, meter, serve, onClose }: RequestListenerDeps) {
  return (incoming: IncomingMessage, outgoing: ServerResponse, how: RequestOrigin = {}): void => {
    const address = addressOf(incoming);
    const call = new HttpCall(incoming, outgoing, address.text);
    call.expectsContinue = how.expectsContinue ?? false;
    call.identity = how.identity;
    call.mayHandOver = how.elsewhere !== true;
    const leave = open.join(call);
    const begun = clock.monotonic();
    guard.begin(incoming.socket);
    outgoing.on('close', () => {
      leave();
      const status = outgoing.headersSent ? outgoing.statusCode : 0;
      meter?.request(call.route ?? 'none', call.family, methodLabel(incoming.method), status, clock.monotonic() - begun);
      guard.end(incoming.socket);
      onClose();
    });
    void serve(call, address);
  };
}
