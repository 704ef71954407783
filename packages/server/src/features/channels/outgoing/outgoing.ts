import type { ChannelCapabilities, Params, ResultInput } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { auditRow, recordAudit } from '../../../kernel/audit.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Core } from '../../../kernel/core.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { MessageRef, Platform } from '../../../channels/port.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { AutonomyApi } from '../../delegation/autonomy/api.ts';
import type { Destination } from '../delivery/api.ts';
import { type Acts, valueOf } from './acts.ts';
import type { Coordinates, FindTarget, MessageOperation, Target } from './api.ts';
import { type AttachmentDeps, createFindFile } from './attachment.ts';
import { platformIdOf } from './find-target.ts';
import { operationOf } from './operation-of.ts';
import { createReactions, type ReactionsDeps } from './reactions.ts';
import { createSends, type SendsDeps } from './sends.ts';

export interface OutgoingDeps extends Core, AttachmentDeps, SendsDeps, Omit<ReactionsDeps, 'acts'> {
  readonly agents: Pick<AgentsApi, 'usable'>;
  readonly autonomy: Pick<AutonomyApi, 'admit'>;
  readonly findTarget: FindTarget;
  readonly acts: Acts;
  readonly platformOf: (channelType: string) => Platform | undefined;
  readonly capabilitiesOf: (channelType: string) => ChannelCapabilities | undefined;
  /** Whether operations have an identity (`autonomy.durability.enabled`). */
  readonly isDurable: () => boolean;
}

type Name = 'send' | 'reply' | 'react' | 'edit' | 'delete' | 'fetch' | 'attach';
export type OutgoingMethods = HandlersOf<`message.${Name}`>;

/** Messages of programs and agents to conversations that people have with agents, and what can be done with messages there. */
export function createOutgoing(deps: OutgoingDeps): OutgoingMethods {
  const { db, clock, acts, findTarget, bootId } = deps;
  const send = createSends(deps);
  const react = createReactions(deps);
  const findFile = createFindFile(deps);

  /** Finds the conversation; an agent must be allowed to write, and has a quota. */
  async function admitted(coordinates: Coordinates, call: CallContext): Promise<Target> {
    const target = await findTarget(coordinates, call);
    const { agentCaller } = call;
    if (agentCaller !== undefined) deps.autonomy.admit('orch:message', deps.agents.usable(agentCaller.agentId, call), call);
    return target;
  }

  function identityOf(method: string, id: string | undefined, target: Target, content: Readonly<Record<string, unknown>>, call: CallContext) {
    if (id === undefined || !deps.isDurable()) return undefined;
    return operationOf({ method, operationId: id, target, content }, call, { bootId, atMs: clock.now() });
  }

  type Text = Omit<Params<'message.send'>, 'endpoint' | 'channel_type' | 'channel_id' | 'operation_id'>;
  async function write(
    method: 'message.send' | 'message.reply',
    { endpoint, channel_type, channel_id, operation_id: id, ...content }: Params<'message.send'> & { readonly message_id?: string },
    call: CallContext,
  ): Promise<ResultInput<'message.send'>> {
    const target = await admitted({ endpoint, channel_type, channel_id }, call);
    refuseUnsupported(method, target.to, content);
    acts.platformOf(target.to);
    const replyTo = content.message_id === undefined ? undefined : await platformIdOf(db, target, content.message_id);
    const operation: Omit<MessageOperation, 'state'> | undefined = identityOf(method, id, target, content, call);
    return send({ target, message: { text: content.text, replyTo, buttons: content.buttons?.flat() }, operation }, call);
  }

  function refuseUnsupported(method: string, to: Destination, { buttons = [], cards = [], effects = [], thread_reply: inThread }: Text): void {
    if (cards.length > 0) throw acts.notOffered(method, to, 'cards');
    if (effects.length > 0) throw acts.notOffered(method, to, 'effects');
    if (inThread === true && to.threadId === null)
      throw new AppError('precondition_failed', `${method}: thread_reply needs an endpoint with a threadId`, { param: 'thread_reply' });
    for (const { command } of buttons.flat())
      if (Buffer.byteLength(command) > 64)
        throw new AppError('invalid_params', 'buttons: expected commands of at most 64 bytes', { param: 'buttons' });
  }

  /** Finds a message on a platform that offers something for it. */
  async function messageOf(
    method: `message.${Name}`,
    { feature, message_id: id, ...coordinates }: Coordinates & { readonly feature: 'editMessages' | 'deleteMessages'; readonly message_id: string },
    call: CallContext,
  ) {
    const target = await findTarget(coordinates, call);
    acts.require(method, target.to, feature);
    const opened = acts.platformOf(target.to);
    const messageId = await platformIdOf(db, target, id);
    if (messageId === undefined)
      throw new AppError('precondition_failed', `${method}: the platform has given this message no id`, { param: 'message_id' });
    const { conversationId, threadId } = target.to;
    const message: MessageRef = { conversationId, threadId: threadId ?? undefined, messageId };
    return { ...target, ...opened, message };
  }

  const audited = (method: `message.${Name}`, risk: 'read' | 'mutate' | 'destructive', { to, agentId }: Target) => ({
    actionType: method,
    classification: risk,
    target: to.instance,
    metadata: { agentId, conversationId: to.conversationId },
  });

  return {
    'message.send': (params, call) => write('message.send', params, call),
    'message.reply': (params, call) => write('message.reply', params, call),
    async 'message.react'({ message_id: id, emoji, operation_id, ...coordinates }, call) {
      const target = await admitted(coordinates, call);
      acts.require('message.react', target.to, 'reactions');
      acts.platformOf(target.to);
      const messageId = await platformIdOf(db, target, id);
      if (messageId === undefined)
        throw new AppError('precondition_failed', 'message.react: the platform has given this message no id', { param: 'message_id' });
      return react({ target, messageId, emoji, operation: identityOf('message.react', operation_id, target, { id, emoji }, call) }, call);
    },
    async 'message.edit'({ text, ...params }, call) {
      const found = await messageOf('message.edit', { ...params, feature: 'editMessages' }, call);
      const { adapter, platform, message } = found;
      const { edit } = adapter;
      if (edit === undefined) throw acts.notOffered('message.edit', found.to, 'editMessages');
      const { render } = await import('../../../channels/render/render.ts');
      const part = render(text, platform.text.flavour);
      if (Math.max(textSize(part.text, platform), textSize(part.markup ?? '', platform)) > platform.text.most)
        throw new AppError('invalid_params', `text: expected at most ${platform.text.most} (${platform.text.unit}) in one message`, {
          param: 'text',
        });
      await recordAudit(deps, call, audited('message.edit', 'mutate', found));
      valueOf(await acts.run(adapter, call, (options) => edit.call(adapter, message, part, options)));
      return { edited: true, channelId: message.conversationId, messageId: message.messageId };
    },
    async 'message.delete'(params, call) {
      const found = await messageOf('message.delete', { ...params, feature: 'deleteMessages' }, call);
      const { adapter, message } = found;
      const { remove } = adapter;
      if (remove === undefined) throw acts.notOffered('message.delete', found.to, 'deleteMessages');
      // Recorded before: a deletion without a record would be worse than a record of one that failed.
      await recordAudit(deps, call, audited('message.delete', 'destructive', found));
      valueOf(await acts.run(adapter, call, (options) => remove.call(adapter, message, options)));
      return { deleted: true, channelId: message.conversationId, messageId: message.messageId };
    },
    async 'message.fetch'({ limit, before, ...coordinates }, call) {
      const target = await findTarget(coordinates, call);
      acts.require('message.fetch', target.to, 'fetchHistory');
      const { adapter } = acts.platformOf(target.to);
      const { fetch } = adapter;
      if (fetch === undefined) throw acts.notOffered('message.fetch', target.to, 'fetchHistory');
      const first = before === undefined ? undefined : await platformIdOf(db, target, before);
      const { conversationId, threadId } = target.to;
      await recordAudit(deps, call, audited('message.fetch', 'read', target));
      const place = { conversationId, threadId: threadId ?? undefined };
      const fetched = valueOf(await acts.run(adapter, call, (options) => fetch.call(adapter, place, { ...options, limit, before: first })));
      const messages = fetched
        .slice(0, limit)
        .map(({ messageId, senderId, text, sentAtMs }) => ({ id: messageId, senderId, text, timestamp: Math.max(0, Math.floor(sentAtMs)) }));
      return { messages, channelId: conversationId };
    },
    async 'message.attach'({ operation_id: id, caption = '', ...params }, call) {
      const target = await admitted(params, call);
      acts.require('message.attach', target.to, 'attachments');
      acts.platformOf(target.to);
      const most = deps.capabilitiesOf(target.to.channelType)?.limits.attachmentBytes ?? 0;
      const file = await findFile(params, most, call);
      const { attachment_url, attachment_type, file_name } = params;
      const operation = identityOf('message.attach', id, target, { attachment_url, attachment_type, file_name, caption }, call);
      const audit = auditRow(call, clock.now(), audited('message.attach', 'mutate', target));
      const sent = await send({ target, message: { text: caption, files: [file] }, operation, audit }, call);
      const messageId = sent.messageIds.at(-1);
      const receipt = messageId === undefined ? { kind: 'delivered_untracked' as const } : { kind: 'tracked' as const, messageId };
      return { ...sent, receipt: sent.deliveryStatus === 'accepted' ? receipt : null };
    },
  };
}

const textSize = (text: string, { text: { unit } }: Platform): number => (unit === 'bytes' ? Buffer.byteLength(text) : text.length);
