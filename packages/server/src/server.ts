import { readWaitingTurns, resumeBehind } from './transactions/interrupted-turns.ts';
import { suspendWork } from './features/unattended/durable/store.ts';
import { abortOpenTurns, bookWork, openWork } from './transactions/open-work.ts';
import { checkpointTurn, commitDurableTurn, openDurableTurn, reserveForDurable } from './transactions/commit-durable-turn.ts';
import { commitTurn, openTurn } from './transactions/commit-turn.ts';
import { deleteConversation } from './transactions/delete-conversation.ts';
import { resetConversation, resetSession } from './transactions/reset-conversation.ts';
import { escalate } from './transactions/escalate.ts';
import { createAgeClock } from './features/operations/age-clock/age-clock.ts';
import { createAgents } from './features/agents/agents/agents.ts';
import type { Agent } from './features/agents/agents/api.ts';
import { createAutonomy } from './features/delegation/autonomy/autonomy.ts';
import { createBackground } from './features/environment/background/background.ts';
import { createBudgets } from './features/access/budgets/budgets.ts';
import { costOfCall } from './features/access/budgets/limits/ledger.ts';
import { createContext } from './features/conversations/context/context.ts';
import { createMedia } from './features/environment/media/media.ts';
import { createEvents } from './features/operations/events/events.ts';
import { createModelMethods } from './features/agents/models/methods.ts';
import { createReceipts } from './features/conversations/receipts/receipts.ts';
import { createResponses } from './features/conversations/responses/responses.ts';
import { countCompaction } from './features/conversations/sessions/changes/reset-store.ts';
import { createSessions } from './features/conversations/sessions/sessions.ts';
import { createSessionTools } from './features/conversations/sessions/tool.ts';
import { startMetrics } from './features/operations/system/metrics.ts';
import { createTokens } from './features/access/tokens/tokens.ts';
import { createAnnouncer } from './features/conversations/turns/announce.ts';
import { createToolMethods } from './features/agents/tools/tools.ts';
import { createTurnMethods } from './features/conversations/turns/methods.ts';
import { defaultAgentOf, modelsFor, ownModel, primaryModel } from './features/conversations/turns/resolve-target.ts';
import { reserveForTurn } from './features/conversations/turns/store.ts';
import { createKeptLanes } from './features/conversations/turns/durable/kept-lanes.ts';
import { createTurns, type TurnsDeps } from './features/conversations/turns/turns.ts';
import { promptFilesFor } from './features/environment/workspace/setup/prompt-files.ts';
import { owner } from './gateway/app.ts';
import { systemClock, today } from './kernel/clock.ts';
import { createEventBus } from './kernel/event-bus.ts';
import type { Handlers } from './kernel/handlers.ts';
import { createLanes } from './kernel/lane.ts';
import { createModels } from './llm/create-models.ts';
import { probeHttp } from './llm/discover.ts';
import { countTokens } from './llm/count-tokens.ts';
import { createEmbedder } from './llm/embeddings.ts';
import { createMessageCapacity } from './runtime/context-capacity.ts';
import { createFence } from './runtime/fence.ts';
import { createInjectionMonitor } from './runtime/injection-monitor.ts';
import { buildSystemPrompt } from './runtime/prompt.ts';
import { createRunTurn } from './runtime/run-turn.ts';
import { boundTools, restrictTools, selectTools } from './runtime/tool-policy.ts';
import { createToolActivity } from './runtime/tool-activity.ts';
import { createToolSet } from './runtime/tool-set.ts';
import { createListeners } from './wiring/listeners.ts';
import { openCore } from './wiring/core.ts';
import type { ServerHandle, ServerOptions } from './server-handle.ts';
import { createTooling } from './wiring/tooling.ts';
import { wireMemory } from './wiring/memory.ts';
import { requireDiskSpace } from './wiring/disk-guard.ts';
import { createSchedule } from './wiring/unattended.ts';
import { createStops } from './wiring/stops.ts';
import { wireSystem } from './wiring/system.ts';
import { createDelegation } from './wiring/delegation.ts';
import { fileSystemWarnings, jailWarnings, serverWarnings } from './wiring/start-warnings.ts';

/** How long turns aborted by a stop may take to end. */
const abortedMs = 1_000;

/**
 * The composition root: builds everything in order and owns it. What is built first is disposed last; nothing is looked up,
 * each module gets the functions that it uses.
 */
export async function createServer(options: ServerOptions): Promise<ServerHandle> {
  const { config, home, log, overrides = {} } = options;
  await using building = new AsyncDisposableStack();
  const bus = createEventBus((error, kind) => log.error({ err: error, kind }, 'An event listener failed'));

  const wallClock = overrides.clock ?? systemClock;
  const core = await openCore({ building, options, bus, clock: wallClock });
  const { lifetime, metrics, traces, db } = core;
  const clock = building.use(await createAgeClock({ db, clock: wallClock, log: log.module('clock') }));

  const events = building.use(await createEvents({ db, bus, clock, log: log.module('events') }));

  // Models and agents.
  const models = building.use(
    await createModels({
      providers: config.providers,
      modelsConfig: config.models,
      env: options.env,
      probe: overrides.probe === null ? undefined : (overrides.probe ?? probeHttp),
      bus,
      clock,
      log: log.module('models'),
      hideSecrets: options.redactor.hide,
      named: Object.values(config.agents).flatMap((agent) =>
        [agent.model ?? [], agent.fallbackModels, Object.values(agent.operationModels).map((choice) => choice.model)].flat(),
      ),
    }),
  );
  const embedder = createEmbedder(config.embedding, { providers: config.providers, clock });
  if (embedder !== undefined) building.use(embedder);
  const agents = await createAgents({
    db,
    bus,
    clock,
    log: log.module('agents'),
    configured: config.agents,
    defaultId: config.routing.defaultAgentId,
    workspacesDir: home.workspacesDir,
    knowsModel: (name) => models.resolve(name) !== undefined,
    removed: (agentId) => stops.agentRemoved(agentId),
    suspended: (agentId) => stops.agentSuspended(agentId),
    changed: (agentId) => schedule.agentChanged(agentId),
  });
  const tokens = building.use(
    await createTokens({
      db,
      pepper: options.installKey.derive('pepper'),
      configTokens: config.gateway.tokens,
      generatedToken: options.generatedToken,
      clock,
      bus,
      log: log.module('tokens'),
    }),
  );

  const media = building.use(await createMedia({ dir: home.mediaDir, config: config.media, db, bus, clock, log: log.module('media') }));

  // Conversations and turns.
  const lanes = createLanes({ monotonic: clock.monotonic });
  const keptLanes = createKeptLanes(
    lanes,
    (ref) => stops.conversationFreed(ref),
    (target) => sessions.entered(target),
  );
  const countedGenerate = metrics.generate(models.generate);
  const generate = traces?.generate(countedGenerate) ?? countedGenerate;
  const aborted = await db.write(abortOpenTurns, { atMs: clock.now() });
  if (aborted > 0) log.warn({ turns: aborted }, 'Aborted turns that an earlier run left open');
  const autonomy = building.use(
    await createAutonomy({
      db,
      bus,
      clock,
      log: log.module('autonomy'),
      config: config.autonomy,
      agents: agents.api,
      maxCostOf: (need) => ({ tokens: need.inputTokens + need.maxOutputTokens, nano: costOfCall('nano', need, need.maxOutputTokens) }),
      turns: () => {
        const running = turns.rootTurns();
        return [...running, ...stops.waitingTurns().filter(({ rootRunId }) => !running.some((turn) => turn.rootRunId === rootRunId))];
      },
      turnOf: (rootRunId) =>
        turns.rootTurn(rootRunId) ?? stops.waitingTurns().find((turn) => turn.rootRunId === rootRunId) ?? stops.backgroundRoot(rootRunId),
      waitingOf: (rootRunId) => stops.waitingOf(({ rootRunId: id }) => id === rootRunId),
      deliver: escalate,
      announceMessage: (message) => schedule.inbox.announce(message),
    }),
  );
  const budgets = building.use(
    await createBudgets({
      db,
      bus,
      clock,
      log: log.module('budgets'),
      overall: config.budgets,
      agents: agents.api,
      models,
      generate,
      embedder,
      modelsFor: (agent) => modelsFor(agent, models, ownModel(agent, models)),
      openWork,
      bookWork,
      reserveForTurn,
      autonomyOf: autonomy.shown,
      announceUsed: createAnnouncer({ bus, clock }).used,
      countAttempt: metrics.countAttempt,
      turnsOf: lanes.ofGroup,
    }),
  );
  const fence = createFence({ key: options.installKey.derive('fence') });
  const memory = await wireMemory({
    building,
    options,
    db,
    bus,
    clock,
    agents: agents.api,
    embedder,
    work: budgets.work,
    fence: fence.wrap,
  });
  const { web, skills, mcp, workspace, approvals, shell, openedJail } = await createTooling({
    building,
    options,
    db,
    bus,
    clock,
    agents: agents.api,
    fence: fence.wrap,
    capabilities: autonomy,
    disk: core.disk,
    isStopped: autonomy.api.isStopped,
    asking: {
      announceMessage: (message) => schedule.inbox.announce(message),
      resume: (approvalId) => stops.approvalDecided(approvalId),
    },
  });
  const injections = createInjectionMonitor({ bus, clock });
  const toolsOf = (agent: Agent) => mcp.api.visibleTo(agent.id, toolSet.current());
  const messageCapacity = createMessageCapacity(countTokens);
  const systemPrompt: TurnsDeps['systemPrompt'] = (agent, offered, { origin, attended, locale, light }) =>
    buildSystemPrompt({
      agent: agent.config,
      tools: offered,
      skills: light === true ? undefined : skills.api.promptPart(agent),
      files: light === true ? undefined : promptFilesFor(origin, workspace.api.promptFiles(agent)),
      today: today(clock),
      attended,
      locale,
    });
  const historyCapacity: TurnsDeps['historyCapacity'] = (agent, [model], offered, system) =>
    model === undefined ? 0 : messageCapacity({ model, maxTokens: agent.config.maxTokens, system, tools: offered });
  const context = building.use(
    createContext({
      db,
      clock,
      log: log.module('context'),
      fence,
      agents: agents.api,
      work: budgets.work,
      countCompaction,
      capacityOf(agent) {
        const offered = selectTools(toolsOf(agent), agent.config, 'rpc');
        return historyCapacity(agent, [primaryModel(agent, models)], offered, systemPrompt(agent, offered, { origin: 'rpc', attended: true }));
      },
    }),
  );
  const sessions = building.use(
    createSessions({
      db,
      bus,
      clock,
      log: log.module('sessions'),
      agents: agents.api,
      modelOf(agentId) {
        const agent = agents.api.find(agentId);
        const model = agent === undefined ? models.defaultModel() : primaryModel(agent, models);
        return `${model.provider}/${model.modelId}`;
      },
      deleteConversation,
      resetSession,
      resetConversation,
      compact: context.api.compact,
      async alone(ref, call, run) {
        using _lease = await lanes.acquire({
          key: ref,
          group: 'maintenance',
          groupLimit: 16,
          principalId: call.identity.principalId,
          signal: call.signal,
        });
        return await run();
      },
      laneOf: lanes.of,
      cleared: (ref) => background.api.forget(ref),
      stop: (ref) => stops.conversationDeleted(ref),
      clearing: (ref) => stops.conversationCleared(ref),
    }),
  );
  const identityOf = (tokenId: string) => (tokenId === owner.tokenId ? owner : tokens.api.current(tokenId));
  const background = building.use(
    await createBackground({
      db,
      bus,
      clock,
      log: log.module('background'),
      agents: agents.api,
      identityOf,
      reenter: (request, call) => turns.reenter(request, call),
      commands: shell.background,
    }),
  );
  const toolSet = createToolSet(
    [
      ...workspace.tools,
      ...shell.tools,
      ...web.tools,
      ...memory.tools,
      ...createSessionTools(sessions.methods, sessions.isTainted),
      background.tool,
      ...(overrides.tools ?? []),
    ],
    [mcp.api.tools, skills.api.tools, () => schedule.tools, () => delegation.tools()],
    (tool) => traces?.tool(metrics.tool(tool)) ?? metrics.tool(tool),
  );
  const runTurn = metrics.runTurn(
    createRunTurn({
      models: { generate, onRecovered: models.onRecovered },
      clock,
      fence,
      background: background.api,
      activity: createToolActivity({ bus, clock }),
      gate: approvals.gate,
      log: log.module('turns'),
      inspect: injections.inspect,
      hideSecrets: options.redactor.hide,
      keptFile: workspace.taints.mark,
    }),
  );
  const turns = createTurns({
    db,
    bus,
    clock,
    media: media.api,
    agents: agents.api,
    models,
    sessions: sessions.api,
    applyResetPolicy: sessions.applyResetPolicy,
    noticeMessages: sessions.noticeMessages,
    runTurn: traces?.runTurn(runTurn) ?? runTurn,
    background: background.api,
    openTurn,
    commitTurn,
    openDurableTurn,
    checkpointTurn,
    reserveForDurable,
    commitDurableTurn,
    async parked(turn) {
      keptLanes.keep(turn);
      await approvals.suspended(turn.approvalId);
    },
    autonomy: autonomy.turns,
    budgetOf: budgets.budgetOf,
    memory: memory.recall,
    skills: skills.api,
    async inLane({ target: { ref, principalId }, target, agent, kept, signal, delegated, workId }, run) {
      const leave = kept ? sessions.entered(target) : undefined;
      const [group, groupLimit] = delegated === true ? ['delegated', Number.MAX_SAFE_INTEGER] : [agent.id, agent.config.maxConcurrentRuns];
      let lease: Awaited<ReturnType<typeof lanes.acquire>> | undefined;
      // Every turn passes here, and a `using` declaration costs as much as the lane.
      try {
        const continues = workId !== undefined && keptLanes.has(workId);
        lease = await lanes.acquire({ key: ref, group, groupLimit, principalId, signal, continues, yields: workId !== undefined });
        if (workId !== undefined) keptLanes.release(workId);
        return await (traces === undefined ? run() : traces.inConversation(ref, run));
      } finally {
        leave?.();
        lease?.release();
      }
    },
    queued: () => lanes.counts().queued,
    suspendWork,
    async behind(ref) {
      if (!lanes.isKept(ref)) await schedule.durable.resumeWaiting({ kind: 'conversation', subject: ref });
    },
    turnEnded: (turn) => stops.turnEnded(turn),
    context: context.api,
    historyCapacity,
    systemPrompt,
    refreshPrompt: workspace.api.refresh,
    fence: fence.wrap,
    inspect: injections.inspect,
    toolsFor: (agent, origin, policy, bounds) => {
      const restricted = policy === undefined ? toolsOf(agent) : restrictTools(toolsOf(agent), policy);
      if (bounds === undefined) return selectTools(restricted, agent.config, origin);
      const others = bounds.agents.map((id) => agents.api.find(id)?.config);
      return selectTools(boundTools(restricted, bounds.policies, others, origin), agent.config, origin);
    },
    v1Tools: config.gateway.compat.tools,
    modelAliases: config.gateway.compat.models,
    refuse: lifetime.controlPlaneOnly
      ? 'The daemon crashed three times within five minutes and runs without agents; look at its log, then restart it'
      : undefined,
  });
  const schedule = createSchedule({
    building,
    options,
    db,
    bus,
    clock,
    bootId: lifetime.bootId,
    agents: agents.api,
    autonomy: autonomy.api,
    configure: agents.configure,
    knowsModel: (name) => models.resolve(name) !== undefined,
    models,
    checklist: workspace.api.checklist,
    isBusy: (ref) => lanes.of(ref).running,
    turns: turns.api,
    memory: memory.life,
    fence: fence.wrap,
    identityOf,
    noticeMessages: sessions.noticeMessages,
    endWaits: (rootRunId) => stops.waitsEnded(rootRunId),
    onClaimEnd: keptLanes.claimEnded,
    isHeld: () => core.storageFault() !== undefined || core.build.fault() !== undefined,
    mayWork: !lifetime.controlPlaneOnly,
  });
  const stops = createStops({
    log: log.module('approvals'),
    tokens: tokens.api,
    autonomy,
    turns,
    background: background.api,
    commands: shell.background,
    approvals,
    durable: schedule.durable,
    keptLanes,
  });
  const delegation = createDelegation({
    building,
    options,
    db,
    bus,
    clock,
    bootId: lifetime.bootId,
    agents: agents.api,
    autonomy: autonomy.api,
    durable: schedule.durable,
    inbox: schedule.inbox,
    sessions: sessions.api,
    turns: turns.api,
    toolsOf: (agentId) => {
      const agent = agents.api.find(agentId);
      return agent === undefined ? [] : toolsOf(agent);
    },
    jail: openedJail,
    capacity: workspace.capacity,
    isTainted: sessions.isTainted,
    taints: workspace.taints,
    knowsModel: (name) => models.resolve(name) !== undefined,
    fence: fence.wrap,
    identityOf,
    noticeMessages: sessions.noticeMessages,
    work: budgets.work,
    media: media.api,
  });
  delegation.onStopped(stops.runsStopped);
  const responses = building.use(createResponses({ db, clock, log: log.module('responses') }));

  const receipts = building.use(createReceipts({ db, clock, log: log.module('receipts'), execute: turns.api.execute }));

  // Methods: a missing one is a compile error that names it.
  let address: string | null = null;
  const system = wireSystem({
    options,
    db,
    bus,
    clock,
    address: () => address,
    connections: () => listeners.connections(),
    turns: turns.api.counts,
    isReplaced: core.build.isReplaced,
  });
  const unguarded: Handlers = {
    ...system.methods,
    ...agents.methods,
    ...tokens.methods,
    ...background.methods,
    ...budgets.methods,
    ...memory.methods,
    ...sessions.methods,
    ...approvals.methods,
    ...skills.methods,
    ...web.methods,
    ...workspace.methods,
    ...mcp.methods,
    ...context.methods,
    ...createModelMethods({ models, agents: agents.api, embedding: config.embedding, redactText: options.redactor.redact }),
    ...createToolMethods({ agents: agents.api, toolsOf }),
    ...createTurnMethods({ turns: turns.api, db, clock, log: log.module('turns') }),
    ...schedule.methods,
    ...autonomy.methods,
    ...delegation.methods,
  };
  const methods = requireDiskSpace(unguarded, core.disk.assertCanWrite);

  const listeners = createListeners({
    building,
    options,
    core,
    isClockDoubted: () => clock.doubt() !== undefined,
    bus,
    clock,
    handlers: traces?.handlers(methods) ?? methods,
    documents: system.documents,
    tokens: tokens.api,
    turns: turns.api,
    responses: responses.api,
    media: media.api,
    receipts: receipts.api,
    webhooks: schedule.webhooks,
    events: events.api,
    sessions: sessions.api,
    models,
    primaryModel: (agent) => primaryModel(agent, models),
    agents: agents.api,
    embed:
      embedder === undefined
        ? undefined
        : (texts, { identity, signal }, dimensions) =>
            budgets.work.embed({ agentId: defaultAgentOf(agents.api, identity), principalId: identity.principalId, texts, signal, dimensions }),
    embeddingModel: embedder,
    scriptCalls: delegation.scriptCalls,
  });
  // Clients that are let in find the schedule loaded, and the greeting follows at once.
  const left = await db.read(readWaitingTurns, {});
  for (const { isSuspended, ...turn } of left) {
    keptLanes.keep(turn);
    if (isSuspended) keptLanes.free(turn.workId);
  }
  await db.write(resumeBehind, { atMs: clock.now() });
  // Approvals decided while nobody was there to resume their turns.
  await Promise.all(left.map(({ approvalId }) => approvals.suspended(approvalId)));
  await schedule.start();
  const warnings = [
    ...serverWarnings(config.gateway, lifetime.controlPlaneOnly),
    ...fileSystemWarnings(home.dataDir),
    ...core.warnings,
    ...[clock.doubt() ?? []].flat(),
    ...(await jailWarnings(config, openedJail)),
    ...schedule.warnings,
  ];
  address = await listeners.open();
  if (address !== null) lifetime.lock.announce(address);
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
      await Promise.all([listeners.drain(config.gateway.drainTimeoutMs), schedule.drain(config.gateway.drainTimeoutMs)]);
      turns.abortAll();
      // Aborted turns report to their clients and charge what they used.
      await listeners.drain(abortedMs);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
