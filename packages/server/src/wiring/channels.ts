import type { AgentsApi } from '../features/agents/agents/api.ts';
import { type AnswersDeps, createAnswers } from '../features/channels/approvals/answers.ts';
import { createApprovalChats } from '../features/channels/approvals/chats.ts';
import { findOwnerChat } from '../features/channels/approvals/store.ts';
import type { DeliveryApi, Destination } from '../features/channels/delivery/api.ts';
import { admitsOf } from '../channels/people.ts';
import { readRecipients } from '../features/channels/delivery/admission.ts';
import { announceDelivery } from '../features/channels/delivery/announce.ts';
import { createDelivery } from '../features/channels/delivery/delivery.ts';
import { countWaitingParts, maxHeld } from '../features/channels/delivery/held.ts';
import { maxOpen, maxOpenOfConversation } from '../features/channels/delivery/store.ts';
import { createQuietUntil } from '../features/channels/delivery/quiet-hours.ts';
import { createEndpoints } from '../features/channels/delivery/endpoints.ts';
import { InstanceSender } from '../features/channels/delivery/sender.ts';
import type { InstanceConfig } from '../features/channels/instances/api.ts';
import { Instances } from '../features/channels/instances/instances.ts';
import { capabilitiesOf, openPlatform, platformOf } from '../features/channels/instances/platforms.ts';
import { agentsIn } from '../channels/people.ts';
import { createStanding } from '../features/channels/messages/standing.ts';
import { createMessages, type MessagesDeps } from '../features/channels/messages/messages.ts';
import { createVoice } from '../features/channels/messages/voice.ts';
import { createNotifications } from '../features/channels/notifications/notifications.ts';
import { createActs, valueOf } from '../features/channels/outgoing/acts.ts';
import { createFindTarget, destinationOf } from '../features/channels/outgoing/find-target.ts';
import { createOutgoing } from '../features/channels/outgoing/outgoing.ts';
import { readSent } from '../features/channels/outgoing/sends.ts';
import { createMessageTool, originOf } from '../features/channels/outgoing/tool.ts';
import { createPlatformActions } from '../features/channels/platform-actions/platform-actions.ts';
import { createActionTools } from '../features/channels/platform-actions/tools.ts';
import { conversationTarget } from '../features/conversations/sessions/conversation.ts';
import type { TurnsApi } from '../features/conversations/turns/api.ts';
import type { AutonomyApi } from '../features/delegation/autonomy/api.ts';
import type { MediaLibrary } from '../features/environment/media/api.ts';
import type { MultimodalApi } from '../features/environment/multimodal/api.ts';
import { isInternal } from '../features/environment/workspace/taint/internal-names.ts';
import type { SettingsApi } from '../features/operations/settings/api.ts';
import type { DurableWork } from '../features/unattended/durable/api.ts';
import { nextActive } from '../features/unattended/heartbeat/timing/active-hours.ts';
import type { InboxApi } from '../features/unattended/inbox/api.ts';
import { derived } from '../kernel/config/live.ts';
import { createEgress } from '../kernel/egress.ts';
import type { Tool } from '../runtime/tool.ts';
import { acceptChannelMessages, retryChannelMessage } from '../transactions/accept-channel-messages.ts';
import { findTraced, type TracedBy } from '../features/channels/messages/traced.ts';
import { beginChannelSend, expireChannelSends, finishChannelSend, recoverChannelSends } from '../transactions/channel-sends.ts';
import { confirmApproval } from '../transactions/confirm-approval.ts';
import { endWork, endWorkWithMessage } from '../transactions/end-interrupted-turn.ts';
import { sendMessage } from '../transactions/send-message.ts';
import { sendNotification } from '../transactions/send-notification.ts';
import type { Assembly } from './assembly.ts';

export interface ChannelsWiring {
  readonly autonomy: Pick<AutonomyApi, 'admit'>;
  readonly agents: AgentsApi;
  readonly turns: TurnsApi;
  readonly durable: DurableWork;
  readonly inbox: InboxApi;
  readonly settings: SettingsApi;
  readonly media: MediaLibrary;
  readonly speech: MultimodalApi;
  readonly outbox: Outbox;
  readonly reset: MessagesDeps['reset'];
  readonly stop: MessagesDeps['stop'];
  readonly decideApproval: AnswersDeps['decide'];
  readonly answerGate: AnswersDeps['answerGate'];
  readonly principalOfPerson: (name: string) => string;
  readonly onUnpaired: MessagesDeps['onUnpaired'];
}

/** What is sent to chat platforms, for everything that sends: stored at once, sent when its channel is connected. */
export function wireOutbox({ options, live, core }: Assembly, { agents }: { readonly agents: Pick<AgentsApi, 'find'> }) {
  // Before the channels are built none is connected, and each sends what is pending when it connects.
  let wake: (instance: string) => void = () => {};
  const channels = live((config) => config.channels);
  const { db } = core('delivery');
  const quietUntil = createQuietUntil({ channels: () => channels.current, agents, nextWithin: nextActive });
  const delivery = createDelivery({
    ...core('delivery'),
    platformOf,
    wake: (instance) => wake(instance),
    maxPartsOf: (name) => channels.current[name]?.maxParts,
    quietUntil,
  });
  const types = () => new Map(delivery.isLoaded() ? Object.entries(channels.current).map(([name, { type }]) => [name, type]) : []);
  const approvalKey = options.installKey.derive('approval-codes');
  return {
    ...delivery,
    /** Whether work that continues may have something to send. */
    isNeeded: () => Object.keys(channels.current).length > 0,
    /** Names what notifies a connected channel that something waits for it. */
    onWake: (given: typeof wake) => void (wake = given),
    endpoints: createEndpoints({ db, platformOf, types, delivery: delivery.api }),
    quietUntil,
    approvalKey,
    approvalChats: createApprovalChats({
      ...core('channels'),
      delivery: delivery.api,
      key: approvalKey,
      confirm: confirmApproval,
      async isOfOwner(to) {
        const { owners: listed = [] } = channels.current[to.instance] ?? {};
        if (listed.includes(to.conversationId)) return true;
        const there = await db.read(readRecipients, { to, admits: { listed, arePaired: false, isOpen: false } });
        return there !== undefined && there.length > 0;
      },
      async findOwner({ instance, channelType }) {
        const { enabled = false, type, owners = [] } = channels.current[instance] ?? {};
        return enabled && type === channelType ? db.read(findOwnerChat, { instance, channelType, owners }) : undefined;
      },
    }),
  };
}
export type Outbox = ReturnType<typeof wireOutbox>;

export type Channels = ReturnType<typeof wireChannels>;

/** Wires the chat platforms: instances that connect, messages that come in, and the outbox. */
export function wireChannels(assembly: Assembly, deps: ChannelsWiring) {
  const { building, options, bootId, live, core } = assembly;
  const channels = live((config) => config.channels);
  const messages = createMessages({
    ...core('channels'),
    ...deps,
    delivery: deps.outbox.api,
    voice: createVoice({ ...core('channels'), media: deps.media, speech: deps.speech, capabilitiesOf }),
    answers: createAnswers({ ...core('channels'), key: deps.outbox.approvalKey, decide: deps.decideApproval, answerGate: deps.answerGate }),
    accept: acceptChannelMessages,
    retry: retryChannelMessage,
    endWithMessage: endWorkWithMessage,
    endWork,
    configOf: (name) => instances.configOf(name),
    openedOf: (name) => instances.connected(name),
    instancesFor: (call) => (call.identity.agents === undefined ? null : instances.namesFor(call)),
    agentsIn: (to) => {
      const config = instances.configOf(to.instance);
      return config === undefined ? [] : agentsIn(config, to, deps.agents.defaultId);
    },
    targetOf: conversationTarget,
    pairingKey: options.installKey.derive('pairing'),
  });
  const sending = {
    ...core('delivery'),
    bootId,
    beginSend: beginChannelSend,
    finishSend: finishChannelSend,
    recoverSends: recoverChannelSends,
    announceAlert: deps.inbox.announce,
    readFile: (id: string) => deps.media.read(id),
    quietUntil: deps.outbox.quietUntil,
    agents: deps.agents,
  };
  const instances: Instances = new Instances({
    ...core('channels'),
    config: channels,
    agents: deps.agents,
    settings: deps.settings,
    load: deps.outbox.load,
    open: openPlatform,
    take: messages.take,
    cursorOf: messages.cursorOf,
    activeRuns: messages.activeRuns,
    countWaiting: () => core('channels').db.read(countWaitingParts, undefined),
    bounds: { queued: maxOpen, queuedOfConversation: maxOpenOfConversation, heldOfConversation: maxHeld },
    createSender: (instance, config, { adapter, platform }, onSent) =>
      new InstanceSender(sending, {
        instance,
        adapter,
        platform,
        admits: admitsOf(config),
        onSent,
        onUnknown: channels.current[instance]?.onUnknown ?? 'park',
      }),
  });
  building.use(instances);
  deps.outbox.onWake((name) => instances.wake(name));
  const mayWrite = createStanding({
    db: core('channels').db,
    instances: () => Object.entries(channels.current).filter(([, { enabled }]) => enabled),
    principalOfPerson: deps.principalOfPerson,
  });
  const outgoing = building.use(wireOutgoing(assembly, { ...deps, instances, mayWrite, delivery: deps.outbox.api }));
  return {
    methods: { ...instances.methods, ...messages.methods, ...deps.outbox.methods, ...outgoing.methods },
    mayWrite,
    refusalOf: messages.refusalOf,
    standing: () => instances.standing(),
    tracedBy: (named: TracedBy) => core('channels').db.search(findTraced, named),
    async expireSends(limit: number): Promise<void> {
      const { db, bus, clock } = core('delivery');
      const { parts, alerts } = await db.write(expireChannelSends, { ageNowMs: clock.ageNow(), atMs: clock.now(), limit });
      for (const message of alerts) deps.inbox.announce(message);
      for (const part of parts) announceDelivery({ bus, clock }, part);
    },
    tools: outgoing.tools,
    async start(): Promise<void> {
      instances.start();
      await outgoing.start();
    },
  };
}

interface OutgoingWiring extends ChannelsWiring {
  readonly mayWrite: ReturnType<typeof createStanding>;
  readonly instances: Instances;
  readonly delivery: DeliveryApi;
}

/** Wires what programs and agents write into channels: messages, notifications, actions of platforms. */
function wireOutgoing({ bootId, options, live, core, db, clock }: Assembly, deps: OutgoingWiring) {
  const { agents, autonomy, inbox, media, instances, mayWrite, delivery } = deps;
  const configOf = (name: string) => instances.configOf(name);
  const connected = (name: string) => instances.connected(name);
  const mayReceive = async (to: Destination, config: InstanceConfig): Promise<boolean> =>
    (await db.read(readRecipients, { to, admits: admitsOf(config) })) !== undefined;
  const findTarget = createFindTarget({
    db,
    configOf,
    defaultAgentId: () => agents.defaultId,
    mayReceive,
  });
  const acts = createActs({ clock, connected, capabilitiesOf });
  const durability = live((config) => config.autonomy.durability);
  const methods = createOutgoing({
    ...core('channels'),
    agents,
    autonomy,
    media,
    egress: createEgress({ clock, ...options.overrides?.egress }),
    workspaceOf: (agentId) => agents.find(agentId)?.workspaceDir,
    isInternal,
    inbox,
    bootId,
    delivery,
    sendMessage,
    findTarget,
    acts,
    platformOf,
    capabilitiesOf,
    isDurable: () => durability.current.enabled,
  });
  const notifications = createNotifications({
    ...core('notifications'),
    agents,
    delivery,
    sendNotification,
    findTarget,
    destinationOf,
    readSent: (opKey) => readSent(db, opKey),
    mayWrite,
    async mayReceive(to) {
      const config = configOf(to.instance);
      return config === undefined || (await mayReceive(to, config));
    },
    isEnabled: (name) => configOf(name) !== undefined,
    isConnected: (name) => connected(name) !== undefined,
  });
  const actions = createPlatformActions({ ...core('channels'), agents, autonomy, findTarget, acts, valueOf });
  const endpointOf = async (conversationRef: string) => (await originOf(db, conversationRef))?.endpoint;
  const channels = live((config) => config.channels);
  // Agents are offered what some channel has.
  const tools = derived(channels, (configured): readonly Tool[] => {
    const types = new Set(Object.values(configured).flatMap(({ enabled, type }) => (enabled ? [type] : [])));
    if (types.size === 0) return [];
    return [createMessageTool(db, methods), ...createActionTools([...types], { run: actions.run, endpointOf })];
  });
  return {
    methods: { ...methods, ...notifications.methods, ...actions.methods },
    tools,
    start: () => notifications.start(),
    [Symbol.dispose]: () => notifications[Symbol.dispose](),
  };
}
