import type { BrowserAct } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import { type CallContext, ownerOf } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Live } from '../../../../kernel/config/live.ts';
import type { Core } from '../../../../kernel/core.ts';
import { isDiskFull } from '../../../../kernel/disk-full.ts';
import { settledWithin } from '../../../../kernel/timers.ts';
import { nextId } from '../../../../kernel/ids.ts';
import type { BrowserSession } from '../api.ts';
import type { BrowserConfig } from '../config.ts';
import type { Ends, RecordedGap, RecordedStep, Recordings } from './recordings.ts';

/** A step before it is done. */
export interface StepToRecord {
  readonly action: string;
  readonly detail?: string | undefined;
  readonly tabId?: string | undefined;
  /** References whose names in the last snapshot are added to the detail. */
  readonly refs?: readonly string[];
  /** Whether the page may look different afterwards. */
  readonly picture?: boolean;
  readonly by?: 'person';
}

interface RecorderDeps extends Pick<Core, 'clock' | 'log'> {
  readonly config: Pick<Live<BrowserConfig>, 'current'>;
  /** Programs run in real time, whatever clock the rest uses. */
  readonly processClock: Clock;
  readonly recordings: Recordings;
  readonly hideSecrets: (text: string) => string;
}

/** What a tab shows after a step. */
interface Seen {
  readonly detail?: string | undefined;
  readonly url?: string;
  readonly title?: string;
  readonly jpeg?: Buffer;
}

interface Current {
  readonly id: string;
  readonly ends: Ends;
  count: number;
  /** Steps that have begun: what is drawn after the next one is not the page of this one. */
  begun: number;
  /** Settles when all steps so far are written. */
  written: Promise<void>;
  /** Steps since the last one that was stored. */
  gap: RecordedGap | undefined;
}

/** Beyond it a recording is continued in another one, so that the oldest part can be deleted. */
const maxSteps = 500;
/** Longest wait of a step for the picture of the one before it. */
const maxWaitMs = 500;
const maxDetail = 400;
const maxPictureBytes = 300_000;
/** Steps between two checks of `browser.recording.maxMb`. */
const stepsPerCheck = 100;

/** Records the steps in browsers. A step waits a moment until the one before it is written; a picture that comes later is dropped. */
export class Recorder {
  readonly #deps: RecorderDeps;
  readonly #current = new WeakMap<BrowserSession, Current>();
  readonly #forgotten = new WeakSet<BrowserSession>();
  /** The last recording of each agent. */
  readonly #last = new Map<string, Current & { readonly session: BrowserSession }>();

  constructor(deps: RecorderDeps) {
    this.#deps = deps;
  }

  /** Does a step and records it. */
  async step<T extends object>(session: BrowserSession, call: CallContext, what: StepToRecord, work: () => Promise<T>): Promise<T> {
    const { clock, config } = this.#deps;
    if (!config.current.recording.enabled) return work();
    const current = this.#of(session);
    // A browser that hangs is noticed by the step, not before it.
    await settledWithin(this.#deps.processClock, maxWaitMs, [current.written]);
    current.begun += 1;
    const [atMs, sinceMs] = [clock.now(), clock.monotonic()];
    const record = (outcome: { readonly ok: boolean; readonly error?: string; readonly tabId?: string }) => {
      this.#add(session, what, {
        atMs,
        tookMs: Math.round(clock.monotonic() - sinceMs),
        principalId: ownerOf(call),
        traceId: call.traceId,
        by: what.by ?? (call.agentCaller === undefined ? 'caller' : 'agent'),
        action: what.action,
        ok: outcome.ok,
        ...(outcome.error !== undefined && { error: outcome.error }),
        ...((outcome.tabId ?? what.tabId) !== undefined && { tabId: outcome.tabId ?? what.tabId }),
      });
    };
    try {
      const result = await work();
      record(outcomeOf(result));
      return result;
    } catch (error) {
      record({ ok: false, error: error instanceof AppError ? error.message : 'internal error' });
      throw error;
    }
  }

  /** Returns the id of the recording to which steps of a browser are added. */
  idOf(session: BrowserSession | undefined): string | undefined {
    return session === undefined ? undefined : this.#current.get(session)?.id;
  }

  /** Later steps of a browser go to another recording. */
  leave(agentId: string): Promise<void> {
    const current = this.#last.get(agentId);
    if (current === undefined) return Promise.resolve();
    this.#last.delete(agentId);
    current.count = maxSteps;
    return current.written;
  }

  /** Deletes the recordings of an agent that is gone. A step of its browser that ends later is not recorded: a later agent of the same id must not get it. */
  async forget(agentId: string): Promise<void> {
    const last = this.#last.get(agentId);
    if (last !== undefined) this.#forgotten.add(last.session);
    await this.leave(agentId);
    await this.#deps.recordings.removeAgent(agentId);
  }

  async settled(): Promise<void> {
    await Promise.all([...this.#last.values()].map((current) => this.#close(current)));
  }

  /** Returns the steps at the end of a recording that could not be stored, and are not noted in it yet. */
  gapOf(agentId: string, id: string): RecordedGap | undefined {
    const current = this.#last.get(agentId);
    return current?.id === id ? current.gap : undefined;
  }

  /** Settles when a recording is written, with a note of what is missing at its end. */
  #close(current: Current & { readonly session: BrowserSession }): Promise<void> {
    current.written = current.written.then(async () => {
      const { gap, ends, id, session } = current;
      // Without a step there is no recording.
      if (gap === undefined || ends.text === 0) return;
      const isNoted = await this.#deps.recordings.appendGap(session.agentId, id, ends, gap).then(
        () => true,
        () => false,
      );
      if (isNoted) current.gap = undefined;
    });
    return current.written;
  }

  #of(session: BrowserSession): Current {
    const known = this.#current.get(session);
    if (known !== undefined && known.count < maxSteps) return known;
    const id = nextId('rec', this.#deps.clock.now());
    const before = this.#last.get(session.agentId);
    const written = before === undefined ? (known?.written ?? Promise.resolve()) : this.#close(before);
    const current = { id, session, ends: { text: 0, pictures: 0 }, count: 0, begun: 0, written, gap: undefined };
    this.#current.set(session, current);
    this.#last.set(session.agentId, current);
    return current;
  }

  #add(session: BrowserSession, what: StepToRecord, facts: Omit<RecordedStep, 'step' | 'picture'>): void {
    if (this.#forgotten.has(session)) return;
    const current = this.#of(session);
    current.count += 1;
    const step = current.count;
    const { log, recordings } = this.#deps;
    // Begun now: what is pending for longer may show a later page.
    const { begun } = current;
    const seen = this.#see(session, what, facts);
    current.written = current.written
      .then(async () => {
        const { jpeg, ...more } = await seen;
        const own = current.begun === begun ? jpeg : undefined;
        const kept = { step: { ...facts, ...this.#hidden({ ...facts, ...more }), step }, jpeg: own, gap: current.gap };
        try {
          await recordings.append(session.agentId, current.id, current.ends, kept);
        } catch (error) {
          const { from, missing, reason } = current.gap ?? { from: step, missing: 0, reason: isDiskFull(error) ? 'disk_full' : 'failed' };
          current.gap = { from, missing: missing + 1, reason };
          throw error;
        }
        current.gap = undefined;
        if (step % stepsPerCheck === 1) await this.#makeCapacity(current.id);
      })
      .catch((error: unknown) => log.warn({ err: error, agentId: session.agentId }, 'Failed to record a step of a browser'));
  }

  /** Returns what the tab shows after a step. While a person has taken over it is not looked at: a password may be on it. */
  async #see(
    session: BrowserSession,
    { detail, refs = [], picture = false, by }: StepToRecord,
    { tabId }: { readonly tabId?: string | undefined },
  ): Promise<Seen> {
    if (session.isHeld || by === 'person') return { detail };
    try {
      const { names, url, title, jpeg } = await session.glance(tabId, refs, picture);
      const named = [...refs.map((ref) => names[ref] || ref), detail].filter((part) => part !== undefined).join(' ');
      const bytes = jpeg === undefined || session.isHeld ? undefined : Buffer.from(jpeg, 'base64');
      return {
        url,
        title,
        ...(named !== '' && { detail: named }),
        ...(bytes !== undefined && bytes.byteLength <= maxPictureBytes && { jpeg: bytes }),
      };
    } catch {
      // The tab was closed, or the browser is gone.
      return { detail: [...refs, detail].filter((part) => part !== undefined).join(' ') };
    }
  }

  #hidden(texts: {
    readonly detail?: string | undefined;
    readonly url?: string | undefined;
    readonly title?: string | undefined;
    readonly error?: string | undefined;
  }) {
    const { hideSecrets } = this.#deps;
    const entries = Object.entries({ detail: texts.detail, url: texts.url, title: texts.title, error: texts.error });
    return Object.fromEntries(
      entries.flatMap(([key, text]) => (text === undefined || text === '' ? [] : [[key, hideSecrets(text).slice(0, maxDetail)]])),
    );
  }

  /** Deletes the oldest recordings while all of them together have too many bytes. */
  async #makeCapacity(ownId: string): Promise<void> {
    const { config, recordings } = this.#deps;
    const all = await recordings.all();
    let left = all.reduce((sum, { bytes }) => sum + bytes, 0) - config.current.recording.maxMb * 1024 * 1024;
    const running = new Set([ownId, ...[...this.#last.values()].map(({ id }) => id)]);
    for (const { agentId, id, bytes } of all) {
      if (left <= 0) return;
      if (running.has(id)) continue;
      await recordings.remove(agentId, id);
      left -= bytes;
    }
  }
}

function outcomeOf(result: object): { readonly ok: boolean; readonly error?: string; readonly tabId?: string } {
  const ok = !('ok' in result) || result.ok === true;
  return {
    ok,
    ...('error' in result && typeof result.error === 'string' && { error: result.error }),
    ...('tabId' in result && typeof result.tabId === 'string' && { tabId: result.tabId }),
  };
}

/** Describes a step without the text that it types: it may be a password. */
export function describeAct(request: BrowserAct): Omit<StepToRecord, 'tabId'> {
  const step = { action: request.kind, picture: request.kind !== 'close' };
  const on = 'ref' in request && request.ref !== undefined ? { refs: [request.ref] } : {};
  const characters = (count: number) => `${count} ${count === 1 ? 'character' : 'characters'}`;
  switch (request.kind) {
    case 'type':
      return { ...step, ...on, detail: request.secret === undefined ? characters(request.text?.length ?? 0) : `secret ${request.secret}` };
    case 'press':
      // Keys that write one character may spell a password.
      return { ...step, ...on, detail: /^.$/u.test(request.key) ? 'a character' : request.key };
    case 'drag':
      return { ...step, refs: [request.startRef, request.endRef] };
    case 'select':
      return { ...step, ...on, detail: request.values.join(', ') };
    case 'fill':
      return { ...step, refs: request.fields.map(({ ref }) => ref) };
    case 'resize':
      return { ...step, detail: `${request.width}x${request.height}` };
    case 'wait':
      return {
        ...step,
        detail: [request.text, request.textGone, request.selector, request.url, request.loadState].find((part) => part !== undefined),
      };
    case 'evaluate':
      return { ...step, ...on, detail: request.expression };
    case 'upload':
      return { ...step, ...on, detail: request.paths.join(', ') };
    case 'dialog':
      return { ...step, detail: request.accept ? 'OK' : 'Cancel' };
    default:
      return { ...step, ...on };
  }
}
