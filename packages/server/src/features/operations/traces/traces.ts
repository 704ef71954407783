import type { TraceRecord } from '@gatehouse/contract';
import type { Clock } from '../../../kernel/clock.ts';
import type { Live } from '../../../kernel/config/live.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { Log } from '../../../kernel/log.ts';
import { type KeptContent, TurnTrace } from '../../../runtime/turn-trace.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { EndedRecord, TracesApi } from './api.ts';
import { createGetTrace, type GetTraceDeps } from './get-trace.ts';
import { recordEvents } from './event-records.ts';
import { toWorkRecord, withKeptText } from './work-record.ts';
import { RunningTraces } from './running-traces.ts';
import { stripTexts } from './store.ts';
import { TraceRecorder } from './recorder.ts';

export interface TracesDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly config: Pick<Live<{ readonly persistence: { readonly enabled: boolean }; readonly content: KeptContent }>, 'current'>;
  readonly redact: (text: string) => string;
  readonly feedbackOf: GetTraceDeps['feedbackOf'];
  /** Exports what has ended; absent without a collector. */
  readonly exported?: ((record: EndedRecord) => void) | undefined;
}

export interface Traces {
  readonly api: TracesApi;
  readonly methods: HandlersOf<'obs.trace.get'>;
  /** Stores what has ended and is not stored yet; resolves to false when the database did not accept it. */
  readonly flush: () => Promise<boolean>;
  /** Removes the texts from the records of a conversation whose messages are about to be deleted. Never fails. */
  readonly forget: (conversationRef: string) => Promise<void>;
  /** Returns the turns that run now. */
  readonly running: () => readonly TraceRecord[];
}

/** Keeps what turns and other work did, step by step, behind the work and without its content unless that is configured. */
export function createTraces({ db, bus, clock, log, config, redact, feedbackOf, exported }: TracesDeps): Traces & AsyncDisposable {
  const recorder = new TraceRecorder({ db, clock, log });
  const running = new RunningTraces();
  const api: TracesApi = {
    running: (record) => running.add(record),
    ofTurn() {
      const { content, persistence } = config.current;
      return persistence.enabled || exported !== undefined ? new TurnTrace({ clock, content, redact }) : undefined;
    },
    record(ended) {
      if (config.current.persistence.enabled) recorder.push(ended);
      exported?.(ended);
    },
    work(ended) {
      const { content, persistence } = config.current;
      if (persistence.enabled || exported !== undefined) api.record(toWorkRecord(withKeptText(ended, content, redact), clock));
    },
  };
  const events = recordEvents(bus, api.work);
  const flush = () => recorder.flush();
  async function forget(ref: string): Promise<void> {
    try {
      await flush();
      for (let seq: number | undefined = 0; seq !== undefined;) seq = await db.telemetry(stripTexts, { ref, afterSeq: seq });
    } catch (error) {
      log.error({ err: error, conversationRef: ref }, 'Failed to remove the texts from the traces of a conversation');
    }
  }
  const reads = { flush, running: () => running.records() };
  const methods = createGetTrace({ db, feedbackOf, ...reads });
  return {
    api,
    methods,
    ...reads,
    forget,
    async [Symbol.asyncDispose]() {
      events[Symbol.dispose]();
      await recorder.end();
    },
  };
}
