import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Act, Adapter } from '../../../channels/port.ts';
import type { OpenedPlatform } from '../instances/api.ts';
import type { ChannelCapabilities } from '@gatehouse/contract';
import type { Destination } from '../delivery/api.ts';

export interface ActsDeps {
  readonly clock: Clock;
  /** Returns the platform of an instance that is connected now. */
  readonly connected: (instance: string) => OpenedPlatform | undefined;
  readonly capabilitiesOf: (channelType: string) => ChannelCapabilities | undefined;
}

export type Feature = keyof ChannelCapabilities['features'];

/** Time that a platform has for a call. */
const callMs = 30_000;

/** Asks platforms for what is not a message: what they do not offer is refused before, and nothing is repeated. */
export function createActs({ clock, connected, capabilitiesOf }: ActsDeps) {
  const notOffered = (method: string, { instance, channelType }: Destination, what: string): AppError =>
    new AppError('precondition_failed', `${method}: the channel ${instance} (${channelType}) does not offer ${what}`);

  return {
    /** Fails unless the platform offers it. */
    require(method: string, to: Destination, feature: Feature): void {
      if (capabilitiesOf(to.channelType)?.features[feature] !== true) throw notOffered(method, to, feature);
    },
    notOffered,
    /** Returns the platform; fails unless it is connected. */
    platformOf({ instance }: Destination): OpenedPlatform {
      const opened = connected(instance);
      if (opened === undefined) throw new AppError('unavailable', `The channel ${instance} is not connected`);
      return opened;
    },
    /** Runs a call of the wire within its time. */
    async run<Value>(
      adapter: Adapter,
      call: CallContext,
      ask: (options: { readonly signal: AbortSignal }) => Promise<Act<Value>>,
    ): Promise<Act<Value>> {
      const late = new AbortController();
      const abort = () => late.abort();
      const cancel = clock.after(callMs, abort);
      call.signal.addEventListener('abort', abort, { once: true });
      try {
        return await ask.call(adapter, { signal: late.signal });
      } finally {
        cancel();
        call.signal.removeEventListener('abort', abort);
      }
    },
  };
}
export type Acts = ReturnType<typeof createActs>;

/** Returns the value of a call, or throws the failure as an error of the catalogue. */
export function valueOf<Value>(act: Act<Value>): Value {
  if (act.is === 'done') return act.value;
  const { kind, text, retryAfterMs } = act;
  switch (kind) {
    case 'not_found':
    case 'denied':
    case 'unavailable':
      throw new AppError(kind, text);
    case 'invalid':
      throw new AppError('invalid_params', text);
    case 'rate_limited':
      throw new AppError('rate_limited', text, { retryAfterMs: retryAfterMs ?? 1_000 });
    case 'ambiguous':
      throw new AppError('precondition_failed', `${text}: it may have been carried out, and is not repeated`);
  }
}
