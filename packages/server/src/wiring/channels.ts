import type { AgentsApi } from '../features/agents/agents/api.ts';
import { type AnswersDeps, createAnswers } from '../features/channels/approvals/answers.ts';
import { createApprovalChats } from '../features/channels/approvals/chats.ts';
import { createDelivery } from '../features/channels/delivery/delivery.ts';
import { createEndpoints } from '../features/channels/delivery/endpoints.ts';
import { InstanceSender } from '../features/channels/delivery/sender.ts';
import { Instances } from '../features/channels/instances/instances.ts';
import { openPlatform, platformOf } from '../features/channels/instances/platforms.ts';
import { createStanding } from '../features/channels/messages/standing.ts';
import { createMessages, type MessagesDeps } from '../features/channels/messages/messages.ts';
import { conversationTarget } from '../features/conversations/sessions/conversation.ts';
import type { TurnsApi } from '../features/conversations/turns/api.ts';
import type { MediaLibrary } from '../features/environment/media/api.ts';
import type { SettingsApi } from '../features/operations/settings/api.ts';
import type { DurableWork } from '../features/unattended/durable/api.ts';
import type { InboxApi } from '../features/unattended/inbox/api.ts';
import { acceptChannelMessages, retryChannelMessage } from '../transactions/accept-channel-messages.ts';
import { finishChannelSend, recoverChannelSends } from '../transactions/channel-sends.ts';
import { confirmApproval } from '../transactions/confirm-approval.ts';
import { endWork, endWorkWithMessage } from '../transactions/end-interrupted-turn.ts';
import type { Assembly } from './assembly.ts';

export interface ChannelsWiring {
  readonly agents: AgentsApi;
  readonly turns: TurnsApi;
  readonly durable: DurableWork;
  readonly inbox: InboxApi;
  readonly settings: SettingsApi;
  readonly media: MediaLibrary;
  readonly outbox: Outbox;
  readonly reset: MessagesDeps['reset'];
  readonly stop: MessagesDeps['stop'];
  readonly decideApproval: AnswersDeps['decide'];
  readonly answerGate: AnswersDeps['answerGate'];
  readonly principalOfPerson: (name: string) => string;
}

/** What is sent to chat platforms, for everything that sends: stored at once, sent when its channel is connected. */
export function wireOutbox({ options, live, core }: Assembly) {
  // Before the channels are built none is connected, and each sends what is pending when it connects.
  let wake: (instance: string) => void = () => {};
  const channels = live((config) => config.channels);
  const { db } = core('delivery');
  const delivery = createDelivery({ ...core('delivery'), platformOf, wake: (instance) => wake(instance) });
  const types = () => new Map(delivery.isLoaded() ? Object.entries(channels.current).map(([name, { type }]) => [name, type]) : []);
  const approvalKey = options.installKey.derive('approval-codes');
  return {
    ...delivery,
    /** Whether work that continues may have something to send. */
    isNeeded: () => Object.keys(channels.current).length > 0,
    /** Names what notifies a connected channel that something waits for it. */
    onWake: (given: typeof wake) => void (wake = given),
    endpoints: createEndpoints({ db, platformOf, types, delivery: delivery.api }),
    approvalKey,
    approvalChats: createApprovalChats({ ...core('channels'), delivery: delivery.api, key: approvalKey, confirm: confirmApproval }),
  };
}
export type Outbox = ReturnType<typeof wireOutbox>;

export type Channels = ReturnType<typeof wireChannels>;

/** Wires the chat platforms: instances that connect, messages that come in, and the outbox. */
export function wireChannels({ building, options, bootId, live, core }: Assembly, deps: ChannelsWiring) {
  const channels = live((config) => config.channels);
  const messages = createMessages({
    ...core('channels'),
    ...deps,
    delivery: deps.outbox.api,
    answers: createAnswers({ ...core('channels'), key: deps.outbox.approvalKey, decide: deps.decideApproval, answerGate: deps.answerGate }),
    accept: acceptChannelMessages,
    retry: retryChannelMessage,
    endWithMessage: endWorkWithMessage,
    endWork,
    configOf: (name) => instances.configOf(name),
    adapterOf: (name) => instances.connected(name)?.adapter,
    targetOf: conversationTarget,
    pairingKey: options.installKey.derive('pairing'),
  });
  const sending = {
    ...core('delivery'),
    bootId,
    finishSend: finishChannelSend,
    recoverSends: recoverChannelSends,
    announceAlert: deps.inbox.announce,
    readFile: (id: string) => deps.media.read(id),
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
    createSender: (instance, { adapter, platform }, onSent) => new InstanceSender(sending, { instance, adapter, platform, onSent }),
  });
  building.use(instances);
  deps.outbox.onWake((name) => instances.wake(name));
  return {
    methods: { ...instances.methods, ...messages.methods, ...deps.outbox.methods },
    mayWrite: createStanding({
      db: core('channels').db,
      instances: () => Object.entries(channels.current).filter(([, { enabled }]) => enabled),
      principalOfPerson: deps.principalOfPerson,
    }),
    start: () => instances.start(),
  };
}
