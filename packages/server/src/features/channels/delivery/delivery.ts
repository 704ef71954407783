import { hash } from 'node:crypto';
import type { DeliveryState, ResultInput } from '@gatehouse/contract';
import type { Button, Platform, TextRules } from '../../../channels/port.ts';
import { announceAudit, auditRow } from '../../../kernel/audit.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Core } from '../../../kernel/core.ts';
import { headOf } from '../../../kernel/cut-text.ts';
import { toCall } from '../../../kernel/db/operation.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import { nextId } from '../../../kernel/ids.ts';
import { agentsOf } from '../../../channels/people.ts';
import { announceDelivery } from './announce.ts';
import type { DeliveryApi, Destination, OutgoingFile, OutgoingMessage, PartRow } from './api.ts';
import { restOfAnswer, withMarkSpace } from './marks.ts';
import type { QuietUntil } from './quiet-hours.ts';
import { holdOf, isQuietHold } from './held.ts';
import { countStages, decidePart, enqueueParts, listParts } from './store.ts';

/** Answers that could not be sent by then are not sent any more. */
export const answerLifeMs = 60 * 60_000;
const shownText = 2_000;
/** Texts of a platform that does not exist any more. */
const unknownText: TextRules = { flavour: 'plain', most: 2_000, unit: 'utf16', isLine: false, maxParts: 10 };

/** The rest of an answer: a file whose content is the text of its part. */
type RestFile = Pick<PartRow, 'text'> & { readonly fileJson: string };
const restFile = (text: string): OutgoingFile => ({
  mediaId: restOfAnswer,
  kind: 'file',
  name: 'answer.md',
  mediaType: 'text/markdown',
  bytes: Buffer.byteLength(text),
});

export interface DeliveryDeps extends Core {
  readonly platformOf: (channelType: string) => Platform | undefined;
  readonly wake: (instance: string) => void;
  /** Parts of one answer of an instance at most; undefined: as many as its platform takes. */
  readonly maxPartsOf: (instance: string) => number | undefined;
  readonly quietUntil: QuietUntil;
}

type Methods = HandlersOf<'delivery.queue.status' | 'delivery.list' | 'delivery.resend' | 'delivery.settle'>;

export interface Delivery {
  readonly api: DeliveryApi;
  readonly methods: Methods;
  /** Loads what cuts texts, which a daemon without channels never needs: to be awaited before a message is made. */
  load(): Promise<void>;
  isLoaded(): boolean;
}

/** Messages to chat platforms: stored with what they report, sent by the instance (docs/decisions/0071). */
export function createDelivery(deps: DeliveryDeps): Delivery {
  const { db, bus, clock, platformOf } = deps;

  let cutter: typeof import('../../../channels/render/cut/cut.ts') | undefined;
  /** Texts of a platform that is not configured are never sent. */
  const cut = (text: string, rules = unknownText): readonly string[] =>
    cutter?.cutMarkdown(text, rules) ?? (text === '' ? [] : [headOf(text, rules.most)]);

  /** Returns the texts of a message, and what is too long for them as a file, where the platform takes files. */
  function cutFor(text: string, { instance, channelType }: Destination): { readonly texts: readonly string[]; readonly rest?: RestFile | undefined } {
    const { text: given = unknownText, capabilities } = platformOf(channelType) ?? {};
    const rules = withMarkSpace({ ...given, maxParts: deps.maxPartsOf(instance) ?? given.maxParts });
    if (cutter === undefined || rules.isLine || capabilities?.features.attachments !== true) return { texts: cut(text, rules) };
    const { parts, rest } = cutter.cutWithRest(text, rules);
    return { texts: parts, rest: rest === '' ? undefined : { text: rest, fileJson: JSON.stringify(restFile(rest)) } };
  }

  function rowsOf({
    to,
    text,
    subject,
    replyTo,
    edits,
    buttons = [],
    files = [],
    lifeMs = answerLifeMs,
    unsolicited,
    ...message
  }: OutgoingMessage): PartRow[] {
    const platform = platformOf(to.channelType);
    const shown = platform?.capabilities.features.buttons === true ? buttons : [];
    const { texts, rest } = cutFor(shown.length === buttons.length ? text : withCommands(text, buttons), to);
    const all = [
      ...texts.map((one) => ({ text: one, fileJson: null })),
      ...(rest === undefined ? [] : [rest]),
      ...files.map((file) => ({ text: '', fileJson: JSON.stringify(file) })),
    ];
    const atMs = clock.now();
    const base = nextId('ob', atMs);
    const open = {
      state: 'pending',
      unsolicited: unsolicited ?? null,
      notBeforeMs: atMs,
      expiresAtMs: atMs + lifeMs,
      errorKind: null,
      error: null,
    } as const;
    const untilMs = deps.quietUntil({ ...message, ...to, ...open }, atMs);
    return all.map((one, index) => ({
      ...message,
      ...to,
      ...one,
      id: `${base}-${String(index + 1).padStart(2, '0')}`,
      part: index + 1,
      parts: all.length,
      digest: hash('sha256', `${one.fileJson ?? ''}${one.text}`),
      subject: subject ?? null,
      editsId: index === 0 ? (edits ?? null) : null,
      replyTo: index === 0 ? (replyTo ?? null) : null,
      buttonsJson: shown.length > 0 && index === texts.length - 1 ? JSON.stringify(shown) : null,
      attempts: 0,
      repeats: 0,
      bootId: null,
      ambiguousSinceMs: null,
      begunAtMs: null,
      platformId: null,
      createdAtMs: atMs,
      endedAtMs: null,
      ...(untilMs === undefined ? open : { ...open, ...holdOf(open, atMs, untilMs) }),
    }));
  }

  async function decide(id: string, as: 'resend' | 'accepted' | 'rejected', call: CallContext): Promise<ResultInput<'delivery.resend'>> {
    const atMs = clock.now();
    const actionType = as === 'resend' ? 'delivery.resend' : 'delivery.settle';
    const audit = auditRow(call, atMs, { actionType, classification: 'mutate', target: id, metadata: { as } });
    const row = await db.write(decidePart, { id, as, agentIds: agentsOf(call), expiresAtMs: atMs + answerLifeMs, audit, atMs });
    announceAudit(bus, audit);
    announceDelivery(deps, row);
    deps.wake(row.instance);
    return shown(row);
  }

  return {
    load: async () => void (cutter = await import('../../../channels/render/cut/cut.ts')),
    isLoaded: () => cutter !== undefined,
    api: {
      async previewOf(channelType, text) {
        const { render } = await import('../../../channels/render/render.ts');
        const rules = platformOf(channelType)?.text ?? unknownText;
        const [first = ''] = cut(text, { ...rules, most: rules.most - 8 });
        return render(`${first} …`, rules.flavour);
      },
      partsOf: rowsOf,
      async send(message) {
        await db.write(enqueueParts, { parts: rowsOf(message) });
        deps.wake(message.to.instance);
      },
      sendCall: (message) => toCall(enqueueParts, { parts: rowsOf(message) }),
      storeCall: (parts) => toCall(enqueueParts, { parts }),
      wake: deps.wake,
    },
    methods: {
      'delivery.queue.status': async ({ channel_type: only }, call) => {
        const rows = await db.read(countStages, { agentIds: agentsOf(call) });
        const count = (...states: DeliveryState[]) =>
          rows.reduce((sum, { state, channelType, n }) => sum + (states.includes(state) && (only ?? channelType) === channelType ? n : 0), 0);
        return {
          pending: count('pending', 'held'),
          inFlight: count('sending'),
          failed: count('rejected'),
          delivered: count('accepted'),
          expired: count('expired'),
          unknown: count('unknown'),
          held: count('held'),
        };
      },
      'delivery.list': async ({ state = null, channel_instance_id: instance = null, offset, limit }, call) => {
        const { rows, total } = await db.read(listParts, { agentIds: agentsOf(call), state, instance, offset, limit });
        return { deliveries: rows.map(shown), total };
      },
      'delivery.resend': ({ deliveryId }, call) => decide(deliveryId, 'resend', call),
      'delivery.settle': ({ deliveryId, as }, call) => decide(deliveryId, as, call),
    },
  };
}

/** Returns a text that says what buttons would do, for platforms without them. */
const withCommands = (text: string, buttons: readonly Button[]): string =>
  [text, ...buttons.map(({ label, command }) => `${label}: write ${command}`)].join('\n');

function shown(row: PartRow): ResultInput<'delivery.resend'> {
  const { id, state, part, parts, text, attempts, platformId, errorKind, error, agentId, conversationRef, turnId, createdAtMs, endedAtMs } = row;
  return {
    deliveryId: id,
    endpoint: endpointOf(row),
    state,
    part,
    parts,
    text: headOf(text, shownText),
    attempts,
    platformId,
    errorKind,
    error,
    agentId,
    conversationRef,
    turnId,
    createdAt: createdAtMs,
    notBefore: state === 'pending' || isQuietHold(row) ? row.notBeforeMs : null,
    endedAt: endedAtMs,
  };
}

function endpointOf({ channelType, instance, conversationId, threadId, conversationKind }: PartRow) {
  return { channelType, channelInstanceId: instance, conversationId, ...(threadId !== null && { threadId }), conversationKind };
}
