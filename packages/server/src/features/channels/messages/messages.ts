import { createHmac, randomInt } from 'node:crypto';
import type { Params, ResultInput } from '@gatehouse/contract';
import type { ReceivedAttachment, ReceivedMessage } from '../../../channels/port.ts';
import { AppError } from '../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../kernel/audit.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import { headOf } from '../../../kernel/cut-text.ts';
import type { AuditRow } from '../../../kernel/db/audit.ts';
import type { Operation } from '../../../kernel/db/operation.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import { newId, newTraceId, nextId } from '../../../kernel/ids.ts';
import { parseJson } from '../../../kernel/json.ts';
import { RateLimiter } from '../../../kernel/limiter.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { ConversationTarget } from '../../conversations/sessions/api.ts';
import type { DurableWork, NewWork } from '../../unattended/durable/api.ts';
import type { Destination, OutgoingMessage, PartRow } from '../delivery/api.ts';
import type { InstanceConfig } from '../instances/api.ts';
import { agentsIn, agentsOf } from '../../../channels/people.ts';
import { commandIn, isUrgent } from './commands.ts';
import { gatherMs } from './digest.ts';
import { judge, type Trust } from './gate.ts';
import { principalOfSender } from '../../../channels/sender-principal.ts';
import { principalOfGroup, sessionKeyOf } from './identity.ts';
import type { Choice } from './conversations-store.ts';
import { changesOf, destinationOf, filesOf, nameOf, textOf, threadOf } from './received.ts';
import { createRefusalOf } from './refusal.ts';
import { commandLimits, createRunCommand } from './run-command.ts';
import { createRunMessage, messageLimits, type MessageWork, type RunMessageDeps } from './run-message.ts';
import {
  approvePairing,
  commandKind,
  findMessage,
  findPairing,
  listMessages,
  listPairings,
  type MessageChange,
  messageKind,
  type MessageRow,
  type PairingRow,
  readCursor,
  removePairing,
} from './store.ts';
import { shownMessage, shownPairing } from './shown.ts';
import { createReadStored, placeKey, type Stored } from './stored.ts';

interface Intake {
  readonly row: MessageRow;
  /** The agent that it chose for its conversation. */
  readonly choice?: Choice | undefined;
  readonly work?: NewWork | undefined;
  readonly joins?: boolean | undefined;
  readonly pairing?: PairingRow | undefined;
  readonly reply?: readonly PartRow[] | undefined;
  readonly replyWhenFull?: readonly PartRow[] | undefined;
}

export interface MessagesDeps extends RunMessageDeps {
  readonly agents: Pick<AgentsApi, 'find' | 'defaultId'>;
  readonly durable: DurableWork;
  /** Commits messages with what follows from them; returns the ids of those that are new. */
  readonly accept: Operation<
    {
      readonly messages: readonly Intake[];
      readonly changes: readonly MessageChange[];
      readonly cursor?: { readonly instance: string; readonly cursor: string; readonly atMs: number } | undefined;
    },
    { readonly added: readonly string[]; readonly full: readonly string[] }
  >;
  /** Starts the turn of a message that is stored. */
  readonly retry: Operation<{ readonly row: MessageRow; readonly work: NewWork; readonly audit: AuditRow }, void>;
  readonly targetOf: (agentId: string, principalId: string, key: ReturnType<typeof sessionKeyOf>) => ConversationTarget;
  /** Returns the principal of a person of the configuration, or of tokens. */
  readonly principalOfPerson: (name: string) => string;
  /** Names of the channels that a caller administers; null: all, also those that are not configured any more. */
  readonly instancesFor: (call: CallContext) => readonly string[] | null;
  /** Called when a pairing of a principal has ended. */
  readonly onUnpaired: (principalId: string) => void;
  /** Key of the digests of pairing codes. */
  readonly pairingKey: Buffer;
}

type Methods = HandlersOf<'channels.messages' | 'channels.retry' | 'channels.pairings' | 'channels.pair' | 'channels.unpair'>;

const maxSubject = 256;
const codeLifeMs = 60 * 60_000;
const dayMs = 24 * 60 * 60_000;
/** Without characters that look alike. */
const codeAlphabet = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';
const codeLength = 8;
/** Messages of one sender; more are only counted: nobody may fill the disk or the queue. */
const flood = { limit: 30, windowMs: 60_000 };
const botFlood = { limit: 3, windowMs: 60_000 };

/** Takes in messages of platforms: who is answered, by which agent, in which conversation, and with whose authority. */
export function createMessages(deps: MessagesDeps) {
  const { db, bus, clock, log, agents, delivery, durable } = deps;
  const refusalOf = createRefusalOf(deps);
  const { run, gaveUp, active } = createRunMessage(deps, refusalOf);
  durable.handle(messageKind, run, { ...messageLimits, gaveUp });
  durable.handle(commandKind, createRunCommand(deps, refusalOf), commandLimits);
  const floods = new RateLimiter({ ...flood, clock });
  const readStored = createReadStored(deps);
  const botFloods = new RateLimiter({ ...botFlood, clock });
  const wrongCodes = new RateLimiter({ limit: 5, windowMs: 60 * 60_000, clock });
  const macOf = (code: string): string => createHmac('sha256', deps.pairingKey).update(code.toUpperCase()).digest('base64url');

  /** Returns what is to be stored of a message; a reason when nothing is. */
  function plan(instance: string, config: InstanceConfig, message: ReceivedMessage, { choices, known }: Stored): Intake | 'unmentioned' {
    const about = known(message);
    const judgement = judge(message, config, about);
    if (judgement.is === 'unmentioned') return 'unmentioned';
    const to = destinationOf(instance, config, message);
    const offered = agentsIn(config, to, agents.defaultId);
    const choice = judgement.is === 'turn' ? choiceIn(message, to, judgement.trust, offered) : undefined;
    if (choice !== undefined) choices.set(placeKey(to), choice.agentId);
    const agentId = chosenOf(to, choices, offered);
    const files = filesOf(message);
    const row: MessageRow = {
      ...to,
      id: nextId('cm', clock.now()),
      eventKey: message.eventKey ?? null,
      senderId: message.senderId,
      senderName: nameOf(message),
      text: textOf(message),
      platformId: message.messageId ?? null,
      subject: message.subject === undefined ? null : headOf(message.subject, maxSubject),
      attachmentsJson: files.length === 0 ? null : JSON.stringify(files),
      isForwarded: message.isForwarded === true ? 1 : 0,
      isBot: message.isBot ? 1 : 0,
      verdict: 'turn',
      agentId,
      conversationRef: null,
      sentAtMs: message.sentAtMs,
      receivedAtMs: clock.now(),
    };
    if (judgement.is === 'turn') return { ...gather(planTurn(row, to, judgement.trust, about.pairing, files), config), choice };
    if (judgement.is === 'pairing') return planPairing(row, to);
    return { row: { ...row, verdict: judgement.is } };
  }

  /** Returns the agent that a message chooses for its conversation, when its sender may. */
  function choiceIn(message: ReceivedMessage, to: Destination, trust: Trust, offered: readonly string[]): Choice | undefined {
    if (trust === 'guest' || message.isBot || message.isForwarded === true) return undefined;
    if (to.conversationKind === 'shared' && trust !== 'owner') return undefined;
    const command = commandIn(message.text);
    if (command?.name !== 'agent' || command.to === undefined) return undefined;
    const agentId = offered.find((id) => id.toLowerCase() === command.to);
    if (agentId === undefined || agents.find(agentId)?.suspended !== false) return undefined;
    const { instance, channelType, conversationId, threadId } = to;
    return { instance, channelType, conversationId, threadId, agentId, atMs: clock.now() };
  }

  /** Returns the agent of a conversation: the one that was chosen, while it exists and is still offered there. */
  function chosenOf(to: Destination, choices: ReadonlyMap<string, string>, offered: readonly [string, ...string[]]): string {
    const chosen = choices.get(placeKey(to)) ?? choices.get(placeKey({ ...to, threadId: null }));
    return chosen !== undefined && offered.includes(chosen) && agents.find(chosen) !== undefined ? chosen : offered[0];
  }

  /** Monotonic times until which late messages of a conversation wait for others. */
  const gathering = new Map<string, number>();

  /** Has late messages of one sender answered together, with those that come right after them. */
  function gather(intake: Intake, { maxAgeMs }: InstanceConfig): Intake {
    const { row, work } = intake;
    if (work?.kind !== messageKind || row.conversationRef === null || row.isBot === 1 || row.isForwarded === 1) return intake;
    if (commandIn(row.text) !== undefined) return intake;
    const now = clock.monotonic();
    for (const [ref, untilMs] of gathering) if (untilMs <= now) gathering.delete(ref);
    const joins = gathering.has(row.conversationRef);
    if (clock.now() - row.sentAtMs <= maxAgeMs) return joins ? { ...intake, joins } : intake;
    gathering.set(row.conversationRef, now + gatherMs);
    const payload = Object.assign({}, work.payload, { sentAtMs: row.sentAtMs });
    return { ...intake, joins: true, work: { ...work, payload, notBeforeMs: work.atMs + gatherMs } };
  }

  /** Decides again about a stored message: what was configured or approved may have changed. */
  async function planAgain(row: MessageRow): Promise<Intake> {
    const { instance, channelType, senderId, conversationKind, attachmentsJson } = row;
    const config = deps.configOf(instance);
    if (config?.type !== channelType) return { row: { ...row, verdict: 'disabled' } };
    const pairing = conversationKind === 'direct' ? await db.read(findPairing, { instance, channelType, senderId }) : undefined;
    const { conversationId, threadId } = row;
    // It was answered, so it named the agent.
    const judgement = judge({ senderId, conversationId, conversationKind, isBot: row.isBot === 1, mentionsUs: true, text: row.text }, config, {
      pairing,
    });
    if (judgement.is === 'unmentioned') return { row };
    if (judgement.is !== 'turn') return { row: { ...row, verdict: judgement.is } };
    const files = attachmentsJson === null ? [] : (parseJson(attachmentsJson, { maxDepth: 3 }) as ReceivedAttachment[]);
    const to = { instance, channelType, conversationId, threadId, conversationKind };
    const offered = agentsIn(config, to, agents.defaultId);
    const agentId = offered.includes(row.agentId) && agents.find(row.agentId) !== undefined ? row.agentId : offered[0];
    return planTurn({ ...row, verdict: 'turn', agentId }, to, judgement.trust, pairing, files);
  }

  /** The principal of a person may change when it gets its first token, so it is looked up. */
  const principalOf = (pairing: PairingRow | undefined, sender: { readonly instance: string; readonly senderId: string }): string =>
    pairing?.person == null ? (pairing?.principalId ?? principalOfSender(sender)) : deps.principalOfPerson(pairing.person);

  function planTurn(row: MessageRow, to: Destination, trust: Trust, pairing: PairingRow | undefined, files: readonly ReceivedAttachment[]): Intake {
    const { agentId, senderId, senderName, text } = row;
    const agent = agents.find(agentId);
    const principalId = to.conversationKind === 'shared' ? principalOfGroup(to) : principalOf(pairing, { ...to, senderId });
    const target = deps.targetOf(agentId, principalId, sessionKeyOf(to, principalId));
    const stored = { ...row, conversationRef: target.ref };
    // Once a day: the key of a repeat is known.
    const today = Math.floor(row.receivedAtMs / dayMs);
    const say = (what: 'suspended' | 'full', reply: string): readonly PartRow[] =>
      delivery.partsOf({
        opKey: `${what}:${target.ref}:${today}`,
        to,
        ...threadOf(row),
        text: reply,
        agentId,
        principalId,
        conversationRef: target.ref,
        turnId: null,
      });
    if (agent === undefined || agent.suspended)
      return { row: { ...stored, verdict: 'suspended' }, reply: say('suspended', 'The agent is suspended. Your message was recorded.') };
    const payload: MessageWork = {
      target,
      to,
      senderId,
      senderName,
      text,
      trust,
      traceId: newTraceId(),
      ...(row.isForwarded === 1 && { isForwarded: true }),
      ...(row.isBot === 1 && { isBot: true }),
      ...(row.subject !== null && { subject: row.subject }),
      ...(row.platformId !== null && { platformId: row.platformId }),
      ...(files.length > 0 && { files: [...files] }),
    };
    const kind = row.isForwarded === 0 && row.isBot === 0 && isUrgent(text) ? commandKind : messageKind;
    const work = {
      // Work of one commit is claimed in the order of its ids.
      id: nextId('wi', row.receivedAtMs),
      kind,
      key: row.id,
      digest: '',
      agentId,
      payload,
      fits: durable.fits(kind),
      atMs: row.receivedAtMs,
    };
    return { row: stored, work, replyWhenFull: say('full', 'Too many messages wait. Write again in a while.') };
  }

  function planPairing(row: MessageRow, to: Destination): Intake {
    const code = Array.from({ length: codeLength }, () => codeAlphabet[randomInt(codeAlphabet.length)]).join('');
    const { instance, channelType, senderId, senderName, receivedAtMs, agentId } = row;
    const pairing: PairingRow = {
      id: newId('pr'),
      instance,
      channelType,
      senderId,
      senderName,
      conversationId: to.conversationId,
      codeMac: macOf(code),
      person: null,
      principalId: null,
      requestedAtMs: receivedAtMs,
      expiresAtMs: receivedAtMs + codeLifeMs,
    };
    const text = `This agent answers people whom its operator approved. Give the operator this code, valid for an hour: ${code}`;
    const principalId = principalOfSender(row);
    const reply = delivery.partsOf({
      opKey: `pairing:${pairing.id}`,
      to,
      ...threadOf(row),
      text,
      agentId,
      principalId,
      conversationRef: null,
      turnId: null,
    });
    return { row: { ...row, verdict: 'pairing' }, pairing, reply };
  }

  let lastPairing: Promise<unknown> = Promise.resolve();
  async function pair({ code, person }: Params<'channels.pair'>, call: CallContext): Promise<ResultInput<'channels.pair'>> {
    const { principalId: caller } = call.identity;
    const quota = wrongCodes.peek(caller);
    if (!quota.allowed) throw new AppError('rate_limited', 'Too many wrong codes', { retryAfterMs: quota.resetMs });
    const atMs = clock.now();
    const audit = auditRow(call, atMs, { actionType: 'channels.pair', classification: 'security' });
    const personPrincipalId = person === undefined ? null : deps.principalOfPerson(person);
    const approval = { codeMac: macOf(code), instances: deps.instancesFor(call), person: person ?? null, personPrincipalId, audit, atMs };
    const row = await db.write(approvePairing, approval);
    if (row === undefined) {
      wrongCodes.take(caller);
      throw new AppError('not_found', 'No request has this code: it is wrong, used, or older than an hour', { param: 'code' });
    }
    announceAudit(bus, { ...audit, target: row.id });
    greet(row);
    return shownPairing(row);
  }

  const methods: Methods = {
    'channels.messages': async ({ channel_instance_id: instance = null, offset, limit }, call) => {
      const { rows, total } = await db.read(listMessages, { agentIds: agentsOf(call), instance, offset, limit });
      return { messages: rows.map(shownMessage), total };
    },
    'channels.retry': async ({ messageId }, call) => {
      const row = await db.read(findMessage, { id: messageId });
      if (row === undefined || agentsOf(call)?.includes(row.agentId) === false)
        throw new AppError('not_found', 'Message not found', { param: 'messageId' });
      if (row.verdict !== 'suspended' && row.verdict !== 'full')
        throw new AppError('precondition_failed', `The message is "${row.verdict}": expected suspended or full`, { param: 'messageId' });
      const { work, row: planned } = await planAgain(row);
      if (work === undefined) throw new AppError('precondition_failed', `The message would be "${planned.verdict}"`, { param: 'messageId' });
      if (agentsOf(call)?.includes(planned.agentId) === false)
        throw new AppError('precondition_failed', 'Another agent answers there now: expected one of the token', { param: 'messageId' });
      const audit = auditRow(call, clock.now(), { actionType: 'channels.retry', classification: 'mutate', target: messageId });
      await db.write(deps.retry, { row: planned, work, audit });
      announceAudit(bus, audit);
      announce(planned);
      durable.wake(messageKind);
      return { messageId, verdict: 'turn' };
    },
    'channels.pairings': async ({ state = null, offset, limit }, call) => {
      const { rows, total } = await db.read(listPairings, { instances: deps.instancesFor(call), state, atMs: clock.now(), offset, limit });
      return { pairings: rows.map(shownPairing), total };
    },
    // One after the other: many at once would all be within the limit.
    'channels.pair': (params, call) => {
      const paired = lastPairing.then(() => pair(params, call));
      lastPairing = paired.catch(() => {});
      return paired;
    },
    'channels.unpair': async ({ pairingId }, call) => {
      const audit = auditRow(call, clock.now(), { actionType: 'channels.unpair', classification: 'security', target: pairingId });
      const row = await db.write(removePairing, { id: pairingId, instances: deps.instancesFor(call), audit });
      announceAudit(bus, audit);
      if (row.codeMac === null) deps.onUnpaired(principalOf(row, row));
      return { pairingId, removed: true };
    },
  };

  /** Notifies the sender, as far as that is possible: the approval is stored already. */
  function greet({ id, instance, channelType, conversationId, principalId }: PairingRow): void {
    const agentId = deps.configOf(instance)?.agent ?? agents.defaultId;
    const to: Destination = { instance, channelType, conversationId, threadId: null, conversationKind: 'direct' };
    const text = 'You are approved. Write what you want to know.';
    const message: OutgoingMessage = {
      opKey: `paired:${id}`,
      to,
      text,
      agentId,
      principalId: principalId ?? '',
      conversationRef: null,
      turnId: null,
    };
    delivery.send(message).catch((error: unknown) => log.warn({ err: error, pairingId: id }, 'Failed to notify a sender of the approval'));
  }

  function announce({ channelType, instance, id, verdict, agentId, receivedAtMs }: MessageRow): void {
    bus.emit('channel:message', { channelType, channelInstanceId: instance, messageId: id, verdict, agentId, timestamp: receivedAtMs });
  }

  return {
    methods,
    activeRuns: active,
    refusalOf,
    /** Returns how far an instance has received. */
    cursorOf: (instance: string): Promise<string | undefined> => db.read(readCursor, { instance }),
    /** Stores messages; returns the reasons of those that started no turn. Rejects when they could not be stored. */
    async take(
      { instance, channelType }: { readonly instance: string; readonly channelType: string },
      received: readonly ReceivedMessage[],
      cursor?: string,
    ): Promise<readonly string[]> {
      const config = deps.configOf(instance);
      // One that was disabled or replaced may be connected for a moment: what it receives then waits at the platform, as what comes later.
      if (config?.type !== channelType) throw new AppError('unavailable', `The channel ${instance} is being disconnected`);
      const allowed = received.map(
        ({ senderId, isBot }) =>
          floods.take(`${instance} ${senderId}`).allowed && (!isBot || config.bots === 'off' || botFloods.take(`${instance} ${senderId}`).allowed),
      );
      const fresh = received.filter(({ edits }, index) => allowed[index] === true && edits === undefined);
      const stored = await readStored(instance, config, fresh);
      const plans = received.map((message, index) => {
        if (allowed[index] !== true) return 'flood';
        if (message.edits !== undefined) return 'edited';
        const planned = plan(instance, config, message, stored);
        if (planned !== 'unmentioned' && planned.row.verdict === 'turn') stored.answered(message);
        return planned;
      });
      const messages = plans.flatMap((one) => (typeof one === 'string' ? [] : [one]));
      const changes = received.flatMap((message, index) => (allowed[index] === true ? changesOf(instance, message, clock.now()) : []));
      const dropped = plans.flatMap((one) => (typeof one === 'string' ? [one] : one.row.verdict === 'turn' ? [] : [one.row.verdict]));
      if (messages.length === 0 && changes.length === 0 && cursor === undefined) return dropped;
      const reached = cursor === undefined ? undefined : { instance, cursor, atMs: clock.now() };
      const { added, full } = await db.write(deps.accept, { messages, changes, cursor: reached });
      const [isNew, isFull] = [new Set(added), new Set(full)];
      for (const { row } of messages) if (isNew.has(row.id)) announce(isFull.has(row.id) ? { ...row, verdict: 'full' } : row);
      for (const kind of new Set(messages.flatMap(({ work }) => work?.kind ?? []))) durable.wake(kind);
      if (full.length > 0 || messages.some(({ reply }) => reply !== undefined)) delivery.wake(instance);
      return [...dropped, ...full.map(() => 'full')];
    },
  };
}
