import { AgentId, ConversationRef, MessageAttachment, once, PrintedSessionKey } from '@gatehouse/contract';
import { hash } from 'node:crypto';
import * as z from 'zod';
import type { Place } from '../../../channels/port.ts';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Core } from '../../../kernel/core.ts';
import { headOf } from '../../../kernel/cut-text.ts';
import { parseJson } from '../../../kernel/json.ts';
import type { Operation } from '../../../kernel/db/operation.ts';
import { newId } from '../../../kernel/ids.ts';
import { isSilent } from '../../../runtime/silent-answer.ts';
import { refusedEffects } from '../../../runtime/refused-effects.ts';
import type { TurnOutcome, TurnsApi } from '../../conversations/turns/api.ts';
import type { DurableWork, EndWithMessage, WorkClaim, WorkEnd, WorkHandler, WorkItem, WorkLimits } from '../../unattended/durable/api.ts';
import type { InboxApi, InboxMessage } from '../../unattended/inbox/api.ts';
import type { DeliveryApi, OutgoingMessage } from '../delivery/api.ts';
import type { InstanceConfig, OpenedPlatform } from '../instances/api.ts';
import { type CommandDeps, commandIn, runCommand } from './commands.ts';
import { digestText } from './digest.ts';
import { fetchFiles, type FetchedFiles, type FetchFilesDeps, FileUnavailable } from './fetch-files.ts';
import { markMessage } from './mark-message.ts';
import { Preview } from './preview.ts';
import type { RefusalOf } from './refusal.ts';
import { readFiles, readPreview, saveFiles, savePreview } from './store.ts';
import { createSlots } from './slots.ts';
import { showTyping } from './typing.ts';
import type { Voice } from './voice.ts';

/** Work of a message with everything its turn needs: the list of messages may be pruned, and the configuration change. */
export const MessageWork = once(() =>
  z.strictObject({
    target: z.strictObject({ ref: ConversationRef, sessionKey: PrintedSessionKey, agentId: AgentId, principalId: z.string() }),
    /** Destination of the answer: the origin of the message, whatever happens later. */
    to: z.strictObject({
      instance: z.string(),
      channelType: z.string(),
      conversationId: z.string(),
      threadId: z.string().nullable(),
      conversationKind: z.enum(['direct', 'shared']),
    }),
    senderId: z.string(),
    senderName: z.string(),
    text: z.string(),
    isForwarded: z.boolean().optional(),
    /** Written by another bot. */
    isBot: z.boolean().optional(),
    subject: z.string().optional(),
    /** The platform's id of the message, which the answer refers to. */
    platformId: z.string().optional(),
    files: z
      .array(
        z.strictObject({
          ref: z.string(),
          name: z.string(),
          mediaType: z.string().optional(),
          bytes: z.number().optional(),
          isVoice: z.boolean().optional(),
        }),
      )
      .optional(),
    /** Changes of earlier messages that no turn has seen; `now` is empty for a deleted one. */
    changes: z.array(z.strictObject({ was: z.string(), now: z.string() })).optional(),
    /** When it was written, of a late one. */
    sentAtMs: z.number().optional(),
    /** Later messages that are answered with it. */
    later: z.array(z.strictObject({ id: z.string(), sentAtMs: z.number(), text: z.string() })).optional(),
    trust: z.enum(['owner', 'member', 'guest']),
    traceId: z.string(),
  }),
);
export type MessageWork = z.input<ReturnType<typeof MessageWork>>;

const StoredFiles = once(() =>
  z.strictObject({
    attachments: z.array(MessageAttachment()),
    notes: z.array(z.string()),
    said: z.array(z.string()).default([]),
    recordings: z.array(z.string()).default([]),
  }),
);

/** Text of a changed message in the note about it. */
const maxQuoted = 2_000;
/** Turns of channels at the same time; agents have their own limits too. */
export const messageLimits = { concurrency: 64, maxAttempts: 5 };
/** Messages whose files are downloaded at the same time: some wires hold a whole file in memory. */
const maxDownloads = 4;
/** Returns 5 s, 10 s, 20 s, 40 s. */
const waitMs = ({ attempts }: WorkItem) => 5_000 * 2 ** (attempts - 1);

export interface RunMessageDeps extends Core, CommandDeps, FetchFilesDeps {
  readonly turns: Pick<TurnsApi, 'runDurably' | 'attach'>;
  readonly durable: Pick<DurableWork, 'waitFor'>;
  readonly inbox: InboxApi;
  readonly delivery: DeliveryApi;
  readonly voice: Voice;
  readonly endWithMessage: EndWithMessage;
  readonly endWork: Operation<WorkClaim & { readonly state: WorkEnd; readonly errorKind: string; readonly atMs: number }, boolean>;
  /** The configuration of an enabled instance. */
  readonly configOf: (instance: string) => InstanceConfig | undefined;
  /** The wire of an instance that is connected. */
  readonly openedOf: (instance: string) => OpenedPlatform | undefined;
}

/** Answers a message of a platform: runs its turn, and stores the answer for sending in the commit of the turn. */
export function createRunMessage(
  deps: RunMessageDeps,
  refusalOf: RefusalOf,
): {
  readonly run: WorkHandler;
  readonly gaveUp: NonNullable<WorkLimits['gaveUp']>;
  /** Turns of an instance that run now. */
  readonly active: (instance: string) => number;
} {
  const { db, clock, log, delivery } = deps;
  const active = new Map<string, number>();
  /** The last message of each conversation that is being prepared. */
  const preparing = new Map<string, Promise<unknown>>();
  const inSlot = createSlots(maxDownloads);
  const count = (instance: string, change: 1 | -1) => active.set(instance, (active.get(instance) ?? 0) + change);

  /** Alerts the operator that an accepted message gets no answer. */
  async function giveUp(item: WorkItem, work: MessageWork, errorKind: string, cause: string): Promise<void> {
    const { id, owner, fence } = item;
    const atMs = clock.now();
    const inbox = alertOf(item, work, `got no answer: ${cause}`, atMs);
    log.warn({ messageId: item.key, workId: id, instance: work.to.instance, errorKind }, 'Message of a channel got no answer');
    if (await db.write(deps.endWithMessage, { id, owner, fence, state: 'failed', errorKind, inbox, atMs })) deps.inbox.announce(inbox);
  }

  /** Returns the files of a message: fetched once, and the same at each resume. */
  async function filesOf({ key, attempts }: WorkItem, { files = [], to, target }: MessageWork, call: CallContext): Promise<FetchedFiles> {
    if (files.length === 0) return { attachments: [], notes: [], said: [], recordings: [] };
    const known = await db.read(readFiles, { id: key });
    if (known !== undefined) return StoredFiles().parse(parseJson(known, { maxDepth: 8 }));
    const isLastTry = attempts >= messageLimits.maxAttempts;
    const about = { adapter: deps.openedOf(to.instance)?.adapter, agentId: target.agentId, conversationRef: target.ref, isLastTry, call };
    const fetched = await inSlot(() => fetchFiles(files, about, deps));
    await db.write(saveFiles, { id: key, filesJson: JSON.stringify(fetched) });
    return fetched;
  }

  /** Returns what a turn needs that is not in its work: one message of a conversation after the other, so that a file keeps no message from its place. */
  async function prepare(item: WorkItem, work: MessageWork, call: CallContext) {
    const { ref } = work.target;
    const before = preparing.get(ref);
    async function run() {
      await before;
      return { files: await filesOf(item, work, call), known: await db.read(readPreview, { id: item.key }) };
    }
    const prepared = run();
    const settled = prepared.catch(() => {}).finally(() => preparing.get(ref) === settled && preparing.delete(ref));
    preparing.set(ref, settled);
    return prepared;
  }

  /** Returns the preview of the answer, where the platform can edit and the operator wants it; `known` is that of an earlier run. */
  function previewOf({ key, createdAtMs }: WorkItem, work: MessageWork, known: string | undefined): Preview | undefined {
    const { instance, channelType, conversationKind } = work.to;
    const { adapter, platform } = deps.openedOf(instance) ?? {};
    if (adapter?.edit === undefined || conversationKind === 'shared' || deps.configOf(instance)?.streaming !== 'edits') return undefined;
    const save = (previewId: string) => db.write(savePreview, { id: key, previewId });
    return new Preview({
      adapter,
      place: placeOf(work),
      key: `preview:${key}`,
      messageId: known,
      keyWindowMs: platform?.keyWindowMs,
      sinceMs: createdAtMs,
      clock,
      render: (text) => delivery.previewOf(channelType, text),
      begin: () => save(''),
      sent: save,
    });
  }

  return {
    async run(item, signal) {
      const work = MessageWork().parse(item.payload);
      const { id: workId, owner, fence } = item;
      const hasBegun = item.resumed || item.waiting?.hasAsked === true;
      const refusal = hasBegun ? undefined : await refusalOf(work);
      if (refusal !== undefined) {
        await giveUp(item, work, 'not_allowed', refusal);
        return 'settled';
      }
      let alert: InboxMessage | undefined;
      let preview: Preview | undefined;
      const call = callOf(work, item, signal);
      count(work.to.instance, 1);
      const { typing = false, ackReaction } = deps.configOf(work.to.instance) ?? {};
      const adapter = deps.openedOf(work.to.instance)?.adapter;
      const place = placeOf(work);
      await using _mark = markMessage(
        adapter,
        { ...place, messageId: work.platformId ?? '' },
        work.platformId === undefined ? undefined : ackReaction,
      );
      using _typing = showTyping(typing ? adapter : undefined, place, clock);
      try {
        // Words of somebody else command nothing.
        const command = work.isForwarded === true || work.isBot === true ? undefined : commandIn(work.text);
        if (command !== undefined) {
          const text = await runCommand(command, work, call, deps);
          if (text !== undefined) await delivery.send(messageTo(item, work, text, null));
          return { state: 'done' };
        }
        // The answer replaces a known preview, also when the channel is not connected now.
        const { files, known } = await prepare(item, work, call);
        preview = previewOf(item, work, known);
        const outcome = await deps.turns.runDurably(
          {
            workId,
            owner,
            fence,
            origin: 'channel',
            // Words of people whom the operator did not approve have the authority of an untrusted origin.
            ...(work.trust === 'guest' && { authority: 'webhook' as const }),
            target: work.target,
            endpoint: work.to,
            author: { to: work.to, senderId: work.senderId, trust: work.trust },
            ...textsOf(work, files),
            attachments: files.attachments,
            sink: preview,
            kept: true,
            operation: 'interactive',
            refs: { messageId: item.key },
            settle: async (ended) => {
              const previewId = preview === undefined ? known : await preview.end();
              const wait = deps.durable.waitFor(item, ended);
              if (wait !== undefined) return wait;
              const ending = endOf({ item, work, atMs: clock.now() }, ended);
              alert = ending.alert;
              const written = answerOf(item, work, ended, previewId);
              const about = { agentId: work.target.agentId, conversationRef: work.target.ref, call };
              const answer = written && ended.failure === undefined ? await deps.voice.speak(written, files.said.length > 0, about) : written;
              const alongside = [
                ...(answer === undefined ? [] : [delivery.sendCall(answer)]),
                ...(alert === undefined ? [] : [deps.inbox.deliverCall(alert)]),
              ];
              return { ...ending.end, alongside };
            },
          },
          call,
        );
        if (!outcome.settled) return 'settled';
        delivery.wake(work.to.instance);
        if (alert !== undefined) deps.inbox.announce(alert);
        return 'settled';
      } catch (error) {
        if (error instanceof FileUnavailable) return { retryAfterMs: waitMs(item), errorKind: 'file_unavailable' };
        // A busy agent may accept the turn later; other errors are logged by the work itself.
        if (!(error instanceof AppError) || signal.aborted) throw error;
        if (error.code === 'cancelled') return { state: 'aborted', errorKind: 'stopped' };
        if (error.code === 'not_found') {
          await giveUp(item, work, error.code, error.message);
          return 'settled';
        }
        return { retryAfterMs: waitMs(item), errorKind: error.code };
      } finally {
        await preview?.end();
        count(work.to.instance, -1);
      }
    },
    active: (instance) => active.get(instance) ?? 0,
    async gaveUp(item, errorKind, cause) {
      const { id, owner, fence } = item;
      if (errorKind === 'killed') await db.write(deps.endWork, { id, owner, fence, state: 'aborted', errorKind: 'stopped', atMs: clock.now() });
      else if (errorKind !== 'deleted') await giveUp(item, MessageWork().parse(item.payload), errorKind, cause);
    },
  };
}

const placeOf = ({ to: { conversationId, threadId } }: MessageWork): Place => ({ conversationId, threadId: threadId ?? undefined });

/** Returns the text of the operator as it is, and that of everybody else inside of a fence. */
function textsOf(work: MessageWork, files: Pick<FetchedFiles, 'notes' | 'said' | 'recordings'>) {
  const { to, senderName, trust, isForwarded = false, isBot = false } = work;
  const isOwn = trust === 'owner' && !isForwarded;
  const text = wholeText(work, files);
  const recordings = files.recordings.map((one) => `[Recording, transcribed]\n${one}`).join('\n\n');
  if (isOwn && to.conversationKind === 'direct')
    return { message: text === '' ? 'Here is a recording.' : text, ...(recordings !== '' && { fenced: { text: recordings, source: 'recording' } }) };
  const isShared = to.conversationKind === 'shared';
  const who = { owner: 'The operator', member: 'Somebody whom the operator let write to you', guest: 'Somebody whom the operator does not know' };
  return {
    message: `${isBot ? 'Another bot' : who[trust]} ${isForwarded ? 'passed on what somebody else wrote,' : 'wrote'} ${isShared ? 'in a group' : 'directly to you'} over ${to.channelType}. Answer the message below; your answer is sent to where it came from.`,
    // People choose their names, and those of groups.
    fenced: {
      text: [`From: ${senderName}${isShared ? ` in ${to.conversationId}` : ''}`, text, recordings].filter((part) => part !== '').join('\n\n'),
      source: `${to.channelType} message`,
      // What somebody recorded is not the operator's own text.
      ...(isOwn && recordings === '' && { clean: true }),
    },
  };
}

/** Returns the text with what belongs to it: subject, files that are not shown, and changes of earlier messages. */
function wholeText({ subject, changes = [], ...work }: MessageWork, { notes, said }: Pick<FetchedFiles, 'notes' | 'said'>): string {
  const lines = changes.map(({ was, now }) =>
    now === '' ? `[An earlier message was deleted: "${quoted(was)}"]` : `[An earlier message was edited: "${quoted(was)}" is now "${quoted(now)}"]`,
  );
  return [
    ...lines,
    ...(subject === undefined || subject === '' ? [] : [`Subject: ${subject}`]),
    digestText(work),
    ...said.map((one) => `[Voice note, transcribed] ${one}`),
    ...notes,
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}

const quoted = (text: string): string => (text.length <= maxQuoted ? text : `${headOf(text, maxQuoted)}…`);

const lostPreview = '(A message above may show the beginning of this answer; it could not be completed.)';

/** Reasons whose messages have limits and uses of the operator. */
const withoutFigures: Readonly<Record<string, string>> = {
  budget_exceeded: 'what this agent may use is used up for now',
  context_exhausted: 'the conversation has become too long; /new begins another one',
};

/** Returns why a turn failed, for those who read it: figures only for an owner, directly. */
const reasonFor = ({ to, trust }: MessageWork, { kind, message }: NonNullable<TurnOutcome['failure']>): string =>
  trust === 'owner' && to.conversationKind === 'direct' ? message : (withoutFigures[kind] ?? message);

/** Returns the answer to send; undefined when the agent said nothing. */
function answerOf(
  item: WorkItem,
  work: MessageWork,
  { text, failure, turnId }: TurnOutcome,
  previewId: string | undefined,
): OutgoingMessage | undefined {
  const whole = failure === undefined ? text : [text, `(I could not finish: ${reasonFor(work, failure)})`].filter((part) => part !== '').join('\n');
  if (failure === undefined ? isSilent(text) : whole.trim() === '') return undefined;
  // A preview that nothing can change is not left without a word.
  const isLost = previewId === '';
  return { ...messageTo(item, work, isLost ? `${lostPreview}\n\n${whole}` : whole, turnId), edits: isLost ? undefined : previewId };
}

/** Returns the one message that answers another. */
export function messageTo({ key }: WorkItem, { to, target, platformId, subject }: MessageWork, text: string, turnId: string | null): OutgoingMessage {
  const { agentId, principalId, ref } = target;
  const replyTo = to.conversationKind === 'shared' || subject !== undefined ? platformId : undefined;
  return { opKey: `answer:${key}`, to, text, replyTo, subject, agentId, principalId, conversationRef: ref, turnId };
}

function endOf(
  about: { readonly item: WorkItem; readonly work: MessageWork; readonly atMs: number },
  { turnId, finishReason, failure, effectsRefused }: TurnOutcome,
) {
  const { item, work, atMs } = about;
  const result = { turnId, finishReason, ...(failure !== undefined && { cause: failure.cause ?? failure.message }) };
  if (failure === undefined) {
    const alert =
      effectsRefused === undefined ? undefined : messageAbout(item, work, 'refused', `was answered, ${refusedEffects(effectsRefused)}.`, atMs);
    return { alert, end: { state: 'done' as const, result } };
  }
  const alert = failure.transient
    ? alertOf(item, work, `waited for its model provider and failed: ${failure.cause ?? failure.message}`, atMs)
    : undefined;
  return { alert, end: { state: finishReason === 'aborted' ? ('aborted' as const) : ('failed' as const), result, errorKind: failure.kind } };
}

const alertOf = (item: WorkItem, work: MessageWork, what: string, atMs: number) => messageAbout(item, work, 'failed', what, atMs);

function messageAbout(
  { key }: WorkItem,
  { to, senderName, target }: MessageWork,
  end: 'failed' | 'refused',
  what: string,
  atMs: number,
): InboxMessage {
  const text = `A message of ${senderName} (${to.channelType}, "${to.instance}") ${what}`;
  return {
    id: newId('in'),
    opKey: `channel:${key}:${end}`,
    digest: hash('sha256', text),
    source: 'channel',
    agentId: target.agentId,
    conversationRef: target.ref,
    principalId: target.principalId,
    level: 'alert',
    text,
    atMs,
  };
}

/** Returns the call context of the sender, who has no scopes. */
export function callOf({ target, traceId }: MessageWork, { id }: WorkItem, signal: AbortSignal): CallContext {
  const { principalId, agentId } = target;
  return { identity: { principalId, tokenId: principalId, scopes: [], agents: [agentId] }, traceId, requestId: id, signal, transport: 'process' };
}
