import type { Agent } from './features/agents/agents/api.ts';
import { attachedMedia } from './features/conversations/sessions/changes/retention-store.ts';
import type { Knowledge } from './features/knowledge/sources/sources.ts';
import { createMedia } from './features/environment/media/media.ts';
import { createEvents } from './features/operations/events/events.ts';
import { createModelMethods } from './features/agents/models/methods.ts';
import { createProviders } from './features/agents/providers/providers.ts';
import { createReceipts } from './features/conversations/receipts/receipts.ts';
import { createResponses } from './features/conversations/responses/responses.ts';
import { startMetrics } from './features/operations/system/metrics.ts';
import { createToolMethods } from './features/agents/tools/tools.ts';
import { createPrompts } from './features/conversations/prompts/prompts.ts';
import { createPromptMethod } from './features/conversations/turns/preparation/prompt-method.ts';
import { createTurnMethods } from './features/conversations/turns/methods.ts';
import { createInbox } from './features/unattended/inbox/inbox.ts';
import type { Handlers } from './kernel/handlers.ts';
import { createLanes } from './kernel/lane.ts';
import { createFence } from './runtime/fence.ts';
import type { ServerHandle, ServerOptions } from './server-handle.ts';
import { deliverToInbox } from './transactions/deliver-message.ts';
import { readModelUses } from './transactions/model-uses.ts';
import { wireAgents } from './wiring/agents.ts';
import { wireKnowledge } from './wiring/knowledge.ts';
import type { PictureReader } from './features/environment/documents/api.ts';
import { wireBrowser } from './wiring/browser.ts';
import { type Channels, wireChannels, wireOutbox } from './wiring/channels.ts';
import { wireConfigWatch } from './wiring/config-watch.ts';
import { type Delegation, wireDelegation } from './wiring/delegation.ts';
import { wireDocuments } from './wiring/documents.ts';
import { wireEvaluation } from './wiring/evaluation.ts';
import { openFoundation } from './wiring/foundation.ts';
import { Late } from './wiring/late.ts';
import { wireLimits } from './wiring/limits.ts';
import { wireListeners } from './wiring/listeners.ts';
import { wireMemory } from './wiring/memory.ts';
import { wireModels } from './wiring/models.ts';
import { wireMultimodal } from './wiring/multimodal.ts';
import { createRootTurns, type RootTurns } from './wiring/root-turns.ts';
import { createStops, type Stops } from './wiring/stops.ts';
import { wireRetention } from './wiring/retention.ts';
import { wireSettings } from './wiring/settings.ts';
import { createSessionStop, createStopConversation } from './wiring/stop-conversation.ts';
import { wireSystem } from './wiring/system.ts';
import { wireTooling, wireToolSet } from './wiring/tooling.ts';
import { type Unattended, wireUnattended } from './wiring/unattended.ts';
import { restoreWaitingTurns } from './wiring/waiting-turns.ts';
import { wireConversations } from './wiring/conversations.ts';
import { wireTurns } from './wiring/turns.ts';
import type { ToolSet } from './runtime/tool-set.ts';
import { findWarnings } from './wiring/start-warnings.ts';

/** How long turns aborted by a stop may take to end. */
const abortedMs = 1_000;

/**
 * The composition root: builds everything in order and owns it. What is built first is disposed last; nothing is looked up,
 * each module gets the functions that it uses.
 */
export async function createServer(options: ServerOptions): Promise<ServerHandle> {
  const { config, configuration, home, log } = options;
  await using building = new AsyncDisposableStack();
  const foundation = await openFoundation(building, options);
  const { assembly, lifetime, nodes, secrets } = foundation;
  const { core, live, db, bus, clock } = assembly;
  const settings = await wireSettings(assembly, lifetime);
  // Parts below that parts above call.
  const late = {
    tools: new Late<ToolSet>('tools'),
    rootTurns: new Late<RootTurns>('root turns'),
    unattended: new Late<Unattended>('unattended work'),
    stops: new Late<Stops>('stops'),
    delegation: new Late<Delegation>('delegation'),
    channels: new Late<Channels>('channels'),
    pictures: new Late<PictureReader>('pictures'),
    sources: new Late<Knowledge>('knowledge sources'),
  };

  const events = building.use(await createEvents(core('events')));
  secrets.announce();
  const { models, embedder, generate, knowsModel } = await wireModels(assembly, foundation);
  const { agents, tokens, identityOf, authority } = await wireAgents(assembly, { ...late, knowsModel, secrets, settings: settings.api });
  const attached = (afterId: number) => db.read(attachedMedia, { afterId });
  const media = building.use(await createMedia({ ...core('media'), dir: home.mediaDir, config: live((whole) => whole.media), attached }));

  let address: string | null = null;
  // Conversations and turns.
  const lanes = createLanes({ monotonic: clock.monotonic });
  const outbox = wireOutbox(assembly, { agents: agents.api });
  if (outbox.isNeeded()) await outbox.load();
  const inbox = createInbox({ ...core('inbox'), deliver: deliverToInbox, delivery: outbox.api });
  const { autonomy, budgets, openCalls } = await wireLimits(assembly, {
    agents: agents.api,
    owners: tokens.owners,
    models,
    generate,
    embedder,
    metrics: foundation.metrics,
    traces: foundation.kept.api,
    inbox: inbox.api,
    lanes,
    rootTurns: late.rootTurns,
  });
  const fence = createFence({ key: options.installKey.derive('fence') });
  const memory = await wireMemory(assembly, { agents: agents.api, embedder, work: budgets.work, fence: fence.wrap });
  const tooling = await wireTooling(assembly, {
    agents: agents.api,
    fence: fence.wrap,
    autonomy,
    inbox: inbox.api,
    chats: outbox.approvalChats,
    identityOf,
    address: () => address,
    stops: late.stops,
    disk: foundation.disk,
  });
  const { web, skills, mcp, workspace, approvals, shell, openedJail, jailState } = tooling;
  const toolsOf = (agent: Agent) => mcp.api.visibleTo(agent.id, late.tools.value.current());
  const documents = wireDocuments(assembly, { media: media.api, workspace, pictures: late.pictures });
  const knowledge = late.sources.set(wireKnowledge(assembly, { lifetime, agents: agents.api, documents: documents.api, web, memory: memory.index }));
  const conversations = wireConversations(assembly, {
    ...late,
    agents: agents.api,
    models,
    work: budgets.work,
    fence,
    lanes,
    tooling,
    toolsOf,
    forgetTraces: foundation.kept.forget,
  });
  const { context, sessions, keptLanes } = conversations;
  const { turns, background } = await wireTurns(assembly, {
    ...late,
    foundation,
    agents: agents.api,
    identityOf,
    authority,
    models,
    generate,
    media: media.api,
    documents: documents.api,
    lanes,
    autonomy,
    budgets,
    openCalls,
    fence,
    memory: memory.recall,
    tooling,
    conversations,
    traces: foundation.kept.api,
  });
  const multimodal = wireMultimodal(assembly, { agents: agents.api, models, work: budgets.work, media: media.api, tooling, channels: late.channels });
  late.pictures.set(multimodal.pictures);
  const browser = await wireBrowser(assembly, { agents: agents.api, tooling });
  const ownTools = { memory: memory.tools, sessions, background: background.tool, documents: documents.tool, multimodal, browser, knowledge };
  late.tools.set(wireToolSet(assembly, { foundation, tooling, ...ownTools, ...late }));
  late.rootTurns.set(createRootTurns({ turns, background: background.api, commands: shell.background, approvals, keptLanes }));
  const unattended = late.unattended.set(
    wireUnattended(assembly, {
      foundation,
      agents: agents.api,
      autonomy: autonomy.api,
      configure: agents.configure,
      knowsModel,
      models,
      checklist: workspace.api.checklist,
      isBusy: (ref) => lanes.of(ref).running,
      turns: turns.api,
      inbox: inbox.api,
      endpoints: outbox.endpoints,
      mayWrite: (principalId, chat) => late.channels.value.mayWrite(principalId, chat),
      refusalOf: (author) => late.channels.value.refusalOf(author),
      memory: memory.life,
      fence: fence.wrap,
      identityOf,
      authority,
      noticeMessages: sessions.noticeMessages,
      endWaits: (rootRunId) => late.stops.value.waitsEnded(rootRunId),
      onClaimEnd: keptLanes.claimEnded,
    }),
  );
  const stopConversation = createStopConversation(assembly, { turns, autonomy, rootTurns: late.rootTurns });
  const channels = late.channels.set(
    wireChannels(assembly, {
      outbox,
      agents: agents.api,
      autonomy: autonomy.api,
      turns: turns.api,
      durable: unattended.durable,
      inbox: inbox.api,
      settings: settings.api,
      media: media.api,
      speech: multimodal.api,
      reset: (conversationRef, call) => sessions.methods['session.reset']({ conversationRef }, call),
      stop: stopConversation,
      decideApproval: approvals.decideInChat,
      answerGate: (answer, call) => Promise.resolve(late.delegation.value.methods['graph.answer'](answer, call)),
      principalOfPerson: (name) => tokens.owners.principalOfPerson(name),
      onUnpaired: (principalId) => late.stops.value.personUnpaired(principalId),
    }),
  );
  const stops = late.stops.set(
    createStops({
      log: log.module('approvals'),
      tokens: tokens.api,
      autonomy,
      turns,
      background: background.api,
      commands: shell.background,
      browser,
      approvals,
      durable: unattended.durable,
      keptLanes,
    }),
  );
  const delegation = late.delegation.set(
    wireDelegation(assembly, {
      foundation,
      agents: agents.api,
      autonomy: autonomy.api,
      durable: unattended.durable,
      inbox: inbox.api,
      endpoints: outbox.endpoints,
      delivery: outbox.api,
      chats: outbox.approvalChats,
      conversations,
      turns: turns.api,
      toolsOf,
      tooling,
      knowsModel,
      fence: fence.wrap,
      identityOf,
      authority,
      work: budgets.work,
      media: media.api,
      runsStopped: stops.runsStopped,
    }),
  );
  const responses = building.use(createResponses(core('responses')));
  const receipts = building.use(createReceipts({ ...core('receipts'), bootId: assembly.bootId, execute: turns.api.execute }));
  const retention = wireRetention(assembly, {
    browserRecordings: browser.recordings,
    lanes,
    turns: turns.api.counts,
    cleared: stops.messagesRemoved,
    expireSends: channels.expireSends,
  });

  const evaluation = wireEvaluation(assembly, {
    agents: agents.api,
    turns: turns.api,
    sessions: sessions.api,
    models,
    fence: fence.wrap,
    identityOf,
    getTrace: foundation.kept.methods['obs.trace.get'],
  });

  // Methods: a missing one is a compile error that names it.
  const system = wireSystem(assembly, {
    address: () => address,
    connections: () => listeners.connections(),
    turns: turns.api.counts,
    nodes: nodes.list,
    isReplaced: foundation.build.isReplaced,
    sections: settings.sections,
    traces: foundation.kept,
    channels: channels.standing,
    tracedBy: channels.tracedBy,
    agents: agents.api,
    usage: budgets.usage,
    events: events.api,
    retention: retention.state,
    jail: jailState,
  });
  const handlers: Handlers = {
    ...system.methods,
    ...settings.methods,
    ...foundation.kept.methods,
    ...secrets.methods,
    ...agents.methods,
    ...tokens.methods,
    ...background.methods,
    ...budgets.methods,
    ...memory.methods,
    ...sessions.methods,
    ...createPrompts(assembly).methods,
    ...createPromptMethod({
      agents: agents.api,
      preparation: conversations.preparation,
      refreshPrompt: workspace.api.refresh,
      hideSecrets: options.redactor.hide,
    }),
    ...createSessionStop({ existing: sessions.api.existing, stop: stopConversation }),
    ...approvals.methods,
    ...skills.methods,
    ...web.methods,
    ...documents.methods,
    ...multimodal.methods,
    ...browser.methods,
    ...knowledge.methods,
    ...workspace.methods,
    ...mcp.methods,
    ...context.methods,
    ...createModelMethods({ models, agents: agents.api, embedding: config.embedding, redactText: options.redactor.redact }),
    ...createProviders({
      models,
      agents: agents.api,
      work: budgets.work,
      settings: settings.api,
      secrets: secrets.api,
      config: () => configuration.current,
      readUses: () => db.read(readModelUses, {}),
      readText: () => configuration.readText(),
      env: options.env,
      redactText: options.redactor.redact,
    }),
    ...createToolMethods({ agents: agents.api, toolsOf }),
    ...createTurnMethods({ turns: turns.api, db, clock, log: log.module('turns') }),
    ...unattended.methods,
    ...channels.methods,
    ...inbox.methods,
    ...autonomy.methods,
    ...delegation.methods,
    ...evaluation.methods,
  };
  const listeners = wireListeners(assembly, {
    foundation,
    handlers,
    documents: system.documents,
    tokens: tokens.api,
    requestLimits: (tokenId) => tokens.owners.requestLimits(tokenId),
    turns: turns.api,
    responses: responses.api,
    media: media.api,
    multimodal: multimodal.api,
    receipts: receipts.api,
    webhooks: unattended.webhooks,
    authorization: mcp.authorization,
    events: events.api,
    sessions: sessions.api,
    models,
    agents: agents.api,
    work: budgets.work,
    embedder,
    scriptCalls: delegation.scriptCalls,
  });
  // Clients that are let in find the schedule loaded, and the greeting follows at once.
  const restoreTurns = () => restoreWaitingTurns(assembly, keptLanes, approvals);
  await restoreTurns();
  assembly.onClaimed(approvals.recover);
  assembly.onClaimed(restoreTurns);
  await unattended.start();
  if (!lifetime.controlPlaneOnly) await channels.start();
  const warnings = [...(await findWarnings(options, foundation, openedJail)), ...secrets.warnings, ...unattended.warnings];
  address = await listeners.open();
  if (address !== null) {
    lifetime.lock.announce(address);
    await nodes.listening(address);
  }
  wireConfigWatch(assembly, settings.api);
  building.use(startMetrics({ clock, bus, activeTurns: () => turns.api.counts().running }));
  const owned = building.move();
  listeners.ready();
  return {
    address,
    discovery: models.describeDiscovery(),
    warnings,
    bus,
    async drain() {
      background.pause();
      delegation.stopping();
      await evaluation.drain();
      const { drainTimeoutMs } = configuration.current.gateway;
      await Promise.all([nodes.drain(), listeners.drain(drainTimeoutMs), unattended.drain(drainTimeoutMs)]);
      turns.abortAll();
      // Aborted turns report to their clients and charge what they used.
      await listeners.drain(abortedMs);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
