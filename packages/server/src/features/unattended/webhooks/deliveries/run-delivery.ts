import { AgentId, ConversationRef, FinishReason, PrintedSessionKey, once } from '@gatehouse/contract';
import { hash } from 'node:crypto';
import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import type { TraceWork } from '../../../../kernel/work-trace.ts';
import type { Log } from '../../../../kernel/log.ts';
import { newId } from '../../../../kernel/ids.ts';
import { refusedEffects } from '../../../../runtime/refused-effects.ts';
import { isSilent } from '../../../../runtime/silent-answer.ts';
import type { DurableWork, EndWithMessage, WorkHandler, WorkItem, WorkLimits, WorkState } from '../../durable/api.ts';
import type { Destination, EndpointsApi } from '../../../channels/delivery/api.ts';
import type { InboxApi, InboxMessage } from '../../inbox/api.ts';
import type { TurnOutcome, TurnsApi } from '../../../conversations/turns/api.ts';
import { announceDelivery } from './announce.ts';
import type { Deliver } from './deliver.ts';
import type { WebhookMapping } from '../config.ts';
import type { Rule } from '../rules/rules.ts';
import { hasExpressions } from '../rules/template.ts';

/** Work of a delivery with everything its turn needs, so that the list of deliveries may be pruned. */
const DeliveryWork = once(() =>
  z.strictObject({
    mappingId: z.string(),
    target: z.strictObject({ ref: ConversationRef, sessionKey: PrintedSessionKey, agentId: AgentId, principalId: z.string() }),
    /** The rendered message, unfenced. */
    message: z.string(),
    template: z.string().optional(),
    traceId: z.string(),
    /** An operator's test (`webhooks.test`). */
    synthetic: z.literal(true).optional(),
  }),
);
export type DeliveryWork = z.input<ReturnType<typeof DeliveryWork>>;

/** Result stored with the work. */
export const DeliveryResult = once(() =>
  z.object({
    turnId: z.string(),
    finishReason: FinishReason,
    cause: z.string().optional(),
    effectsRefused: z.int().optional(),
  }),
);

/** Limits of concurrent webhook turns; agents have their own limits too. */
export const deliveryLimits = { concurrency: 64, maxAttempts: 5 };
/** Returns 10 s, 20 s, 40 s, 80 s. */
const waitMs = ({ attempts }: WorkItem) => 10_000 * 2 ** (attempts - 1);

/** Runs the turn of a delivery in the background. Its result goes to the log, an event and the list of deliveries, never to the sender. */
export function createRunDelivery(deps: {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly traceWork: TraceWork;
  readonly ruleOf: (mappingId: string) => Rule | undefined;
  readonly turns: Pick<TurnsApi, 'runDurably'>;
  readonly keysOf: Deliver['keysOf'];
  readonly durable: Pick<DurableWork, 'waitFor'>;
  readonly inbox: InboxApi;
  readonly endpoints: Pick<EndpointsApi, 'address'>;
  readonly endWithMessage: EndWithMessage;
}): { readonly run: WorkHandler; readonly gaveUp: NonNullable<WorkLimits['gaveUp']> } {
  function announce({ key: deliveryId, createdAtMs, attempts }: WorkItem, work: DeliveryWork, state: WorkState, errorKind?: string): void {
    const { mappingId: mapping, traceId, target } = work;
    announceDelivery(
      deps,
      { deliveryId, mapping, agentId: target.agentId, state },
      {
        startedAtMs: createdAtMs,
        traceId,
        principalId: target.principalId,
        conversationRef: target.ref,
        sessionKey: target.sessionKey,
        synthetic: work.synthetic === true,
        error: errorKind === undefined ? null : { kind: errorKind },
        facts: { action: 'agent', attempts },
      },
    );
  }

  function failed({ key, id }: WorkItem, { mappingId, target }: DeliveryWork, errorKind: string): void {
    deps.log.warn({ deliveryId: key, workId: id, mapping: mappingId, ...deps.keysOf(target), errorKind }, 'Webhook turn failed');
    deps.bus.emit('system:error', {
      source: 'webhooks',
      message: `Mapping ${mappingId}, delivery ${key}: ${errorKind}`,
      timestamp: deps.clock.now(),
    });
  }

  /** Gives up a delivery and alerts the operator, because the sender got an acceptance and the conversation does not show it. */
  async function giveUp(item: WorkItem, work: DeliveryWork, errorKind: string, cause: string): Promise<void> {
    const { id, owner, fence } = item;
    const atMs = deps.clock.now();
    const inbox = alertOf(item, work, `was given up: ${cause}`, atMs);
    failed(item, work, errorKind);
    if (await deps.db.write(deps.endWithMessage, { id, owner, fence, state: 'failed', errorKind, inbox, atMs })) deps.inbox.announce(inbox);
    announce(item, work, 'failed', errorKind);
  }

  return {
    async run(item, signal) {
      const work = DeliveryWork().parse(item.payload);
      const { mapping } = deps.ruleOf(work.mappingId) ?? {};
      if (mapping === undefined) {
        await giveUp(item, work, 'mapping_removed', 'its mapping was removed from the configuration');
        return 'settled';
      }
      const { id: workId, owner, fence } = item;
      announce(item, work, 'running');
      let alert: InboxMessage | undefined;
      let answer: InboxMessage | undefined;
      try {
        const outcome = await deps.turns.runDurably(
          {
            workId,
            owner,
            fence,
            origin: 'webhook',
            target: work.target,
            ...messageOf(work),
            ...(mapping.target !== undefined && { endpoint: destinationOf(mapping.target) }),
            ...(mapping.model !== undefined && { model: mapping.model }),
            ...(mapping.timeoutSeconds !== undefined && { timeoutMs: mapping.timeoutSeconds * 1000 }),
            ...(mapping.tools !== undefined && { toolPolicy: mapping.tools }),
            kept: true,
            operation: 'interactive',
            synthetic: work.synthetic,
            refs: { deliveryId: item.key },
            settle: (ended) => {
              const wait = deps.durable.waitFor(item, ended);
              if (wait !== undefined) return wait;
              const ending = endOf({ item, work, atMs: deps.clock.now() }, ended);
              alert = ending.alert;
              answer =
                ended.failure === undefined ? answerOf(deps.endpoints, mapping.target, { item, work, atMs: deps.clock.now() }, ended) : undefined;
              const messages = [alert, answer].flatMap((message) => message ?? []);
              return { ...ending.end, alongside: messages.map((message) => deps.inbox.deliverCall(message)) };
            },
          },
          callOf(work, item, signal),
        );
        if (!outcome.settled) return 'settled';
        announce(item, work, outcome.state, outcome.failure?.kind);
        deps.log.debug(
          { deliveryId: item.key, workId, mapping: mapping.id, ...deps.keysOf(work.target), state: outcome.state },
          'Webhook turn ended',
        );
        for (const message of [alert, answer]) if (message !== undefined) deps.inbox.announce(message);
        if (outcome.state !== 'done' && outcome.state !== 'accepted') failed(item, work, outcome.failure?.kind ?? outcome.state);
        return 'settled';
      } catch (error) {
        // A busy or suspended agent may accept the turn later; other errors are logged by the work itself.
        if (!(error instanceof AppError) || signal.aborted) throw error;
        if (error.code === 'not_found') {
          await giveUp(item, work, error.code, error.message);
          return 'settled';
        }
        announce(item, work, 'accepted');
        return { retryAfterMs: waitMs(item), errorKind: error.code };
      }
    },
    async gaveUp(item, errorKind, cause) {
      const work = DeliveryWork().parse(item.payload);
      if (errorKind !== 'deleted') return giveUp(item, work, errorKind, cause);
      failed(item, work, errorKind);
      announce(item, work, 'failed', errorKind);
    },
  };
}

const destinationOf = ({
  channelInstanceId: instance,
  channelType,
  conversationId,
  threadId,
  conversationKind,
}: NonNullable<WebhookMapping['target']>): Destination => ({ instance, channelType, conversationId, threadId: threadId ?? null, conversationKind });

/** Returns the answer of a turn, for the chat of its mapping; undefined when there is none, or nothing to say. */
function answerOf(
  { address }: Pick<EndpointsApi, 'address'>,
  target: WebhookMapping['target'],
  { item: { key }, work, atMs }: { readonly item: WorkItem; readonly work: DeliveryWork; readonly atMs: number },
  { text }: TurnOutcome,
): InboxMessage | undefined {
  if (target === undefined || isSilent(text)) return undefined;
  const { agentId, ref: conversationRef, principalId } = work.target;
  const about = { source: 'webhook', level: 'info', agentId, conversationRef, principalId } as const;
  return address({ id: newId('in'), opKey: `webhook:${key}:answer`, digest: hash('sha256', text), ...about, text, atMs }, destinationOf(target));
}

/** Returns how the work of a delivery ends with its turn, and the alert to store with it. */
function endOf(
  { item, work, atMs }: { readonly item: WorkItem; readonly work: DeliveryWork; readonly atMs: number },
  { turnId, finishReason, failure, effectsRefused }: TurnOutcome,
) {
  const refused = effectsRefused === undefined ? {} : { effectsRefused };
  const result = { turnId, finishReason, ...refused, ...(failure !== undefined && { cause: failure.cause ?? failure.message }) };
  if (failure === undefined) {
    const alert =
      effectsRefused === undefined ? undefined : messageAbout(item, work, 'refused', `completed, ${refusedEffects(effectsRefused)}.`, atMs);
    return { alert, end: { state: 'done' as const, result } };
  }
  const alert = failure.transient
    ? alertOf(item, work, `failed after waiting for its model provider: ${failure.cause ?? failure.message}`, atMs)
    : undefined;
  return { alert, end: { state: finishReason === 'aborted' ? ('aborted' as const) : ('failed' as const), result, errorKind: failure.kind } };
}

/** Returns the operator's unrendered template outside of the fence, and the text from the delivery inside. */
function messageOf({ mappingId, message, template }: DeliveryWork) {
  const intro = `A webhook arrived (mapping "${mappingId}").`;
  if (template !== undefined && !hasExpressions(template)) return { message: `${intro}\n\n${template}` };
  const asked =
    template === undefined ? intro : `${intro} The operator's template for such webhooks follows, and below it the rendered text:\n\n${template}`;
  return { message: asked, fenced: { text: message, source: `webhook ${mappingId}` } };
}

/** Returns the alert for a delivery that was accepted but not completed. */
function alertOf(item: WorkItem, work: DeliveryWork, what: string, atMs: number): InboxMessage {
  return messageAbout(item, work, 'failed', `${what}. Next step: \`gatehouse webhooks replay ${item.key}\` runs it again.`, atMs);
}

function messageAbout({ key }: WorkItem, { mappingId, target }: DeliveryWork, end: 'failed' | 'refused', what: string, atMs: number): InboxMessage {
  const text = `Webhook delivery ${key} (mapping "${mappingId}") ${what}`;
  return {
    id: newId('in'),
    opKey: `webhook:${key}:${end}`,
    digest: hash('sha256', text),
    source: 'webhook',
    agentId: target.agentId,
    conversationRef: null,
    principalId: target.principalId,
    level: 'alert',
    text,
    atMs,
  };
}

/** Returns the call context of the mapping, which has no scopes. */
function callOf({ target, traceId }: DeliveryWork, { id }: WorkItem, signal: AbortSignal): CallContext {
  return {
    identity: { principalId: target.principalId, tokenId: target.principalId, scopes: [], agents: [target.agentId] },
    traceId,
    requestId: id,
    signal,
    transport: 'process',
  };
}
