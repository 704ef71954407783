import { AppError } from '../../../../kernel/app-error.ts';
import type { CallContext, IdentityOf, PartOfRoot } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import { newId, newTraceId } from '../../../../kernel/ids.ts';
import type { Log } from '../../../../kernel/log.ts';
import type { FenceText } from '../../../../runtime/fence.ts';
import type { WorkItem } from '../../../unattended/durable/api.ts';
import type { ApprovalChats } from '../../../channels/approvals/api.ts';
import type { EndpointsApi } from '../../../channels/delivery/api.ts';
import type { InboxApi, InboxMessage } from '../../../unattended/inbox/api.ts';
import type { SubagentsApi } from '../../subagents/api.ts';
import { maxAsked, nodeMessage, questionMessage } from './announce.ts';
import { askPerson } from './gates/ask.ts';
import { isOver, verdictOf } from '../definition/barrier.ts';
import { headOf } from '../../../../kernel/cut-text.ts';
import { type GraphSpec, leavesOf } from '../definition/definition.ts';
import type { AgentTask } from '../nodes/drivers.ts';
import { Limit } from '../nodes/limit.ts';
import { changeOf, type LiveNode, toLiveNode } from '../nodes/live-node.ts';
import { NodeEvents } from './node-events.ts';
import { NodeTexts } from './node-texts.ts';
import type { GraphOperations } from './operations.ts';
import {
  type Announce,
  announceIn,
  chatIn,
  type CancelReason,
  type GraphRow,
  parseDefinition,
  requesterIn,
  type Requester,
  specOf,
} from '../rows.ts';
import { type NodeHost, type Phase, runNode } from '../nodes/run-node.ts';
import type { SummarizeOutput } from '../nodes/summary.ts';
import { answerGate, cancelGraph, type FoundGraph } from '../store.ts';

export interface LiveDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly subagents: SubagentsApi;
  readonly inbox: InboxApi;
  readonly endpoints: Pick<EndpointsApi, 'address'>;
  readonly chats: Pick<ApprovalChats, 'gateCode' | 'buttonsOf'>;
  readonly operations: Pick<GraphOperations, 'move'>;
  readonly identityOf: IdentityOf;
  readonly defaultAgentId: string;
  /** Summarizes an output; undefined on failure. */
  readonly summarize: SummarizeOutput;
  /** Maximum number of concurrent nodes. */
  readonly concurrency: () => number;
  readonly fence: FenceText;
}

/** How a graph ended on its own. */
export interface LiveEnd {
  readonly state: 'completed' | 'failed' | 'cancelled';
  readonly reason: CancelReason | null;
}

/** Extra time of a run beyond the deadline of its node, which stops it first. */
const runGraceMs = 5_000;

/** A graph that runs in this process. Its rows contain everything that another process needs to resume it. */
export class LiveGraph {
  readonly row: GraphRow;
  readonly spec: GraphSpec;
  readonly nodes: ReadonlyMap<string, LiveNode>;
  readonly #deps: LiveDeps;
  readonly #claim: Pick<WorkItem, 'id' | 'owner' | 'fence'>;
  readonly #isResumed: boolean;
  readonly #requester: Requester | undefined;
  readonly #announce: Announce;
  readonly #halted = new AbortController();
  readonly #expired = new AbortController();
  readonly #cancelled = new AbortController();
  #reason: CancelReason | null;
  #wake = Promise.withResolvers<void>();
  /** Its time limit, which pauses while a run waits. */
  #limit: Limit | undefined;
  #waitedMs: number;
  #savedWaitedMs: number;
  /** Runs that were waiting when this process took over the graph. */
  readonly #waiting = new Set<string>();
  readonly #texts: NodeTexts;
  readonly #events: NodeEvents;
  /** Active nodes, including those waiting for a retry. */
  readonly #running = new Map<string, Promise<void>>();

  constructor(deps: LiveDeps, { row, nodes }: FoundGraph, { id, owner, fence, attempts, resumed }: WorkItem) {
    this.#deps = deps;
    this.row = row;
    this.spec = specOf(row);
    this.#claim = { id, owner, fence };
    this.#isResumed = attempts > 1 || resumed;
    this.#requester = requesterIn(row);
    this.#announce = announceIn(row);
    this.#reason = row.cancelReason;
    this.#waitedMs = this.#savedWaitedMs = row.waitedMs;
    const rows = new Map(nodes.map((node) => [node.nodeId, node]));
    this.nodes = new Map(
      this.spec.nodes.map((spec) => {
        const found = rows.get(spec.id);
        if (found === undefined) throw new Error(`node ${spec.id} of ${row.id} has no row`);
        return [spec.id, toLiveNode(spec, found)];
      }),
    );
    this.#events = new NodeEvents(deps, row);
    const { fence: fenceText, summarize } = deps;
    const signals = { halted: this.#halted.signal, expired: this.#expired.signal };
    this.#texts = new NodeTexts({ row, spec: this.spec, nodes: this.nodes, part: this.#part, fence: fenceText, summarize, ...signals });
    if (this.#reason !== null) this.#cancelled.abort();
  }

  /** Runs the remaining nodes; undefined when this process does not hold the graph any more. */
  async run(): Promise<LiveEnd | undefined> {
    const { clock } = this.#deps;
    if (this.#isResumed) await this.#restoreWaits();
    const endsAtMs = (this.row.startedAtMs ?? clock.now()) + this.spec.timeoutMs + this.#waitedMs;
    this.#limit = new Limit(clock, endsAtMs - clock.now(), () => {
      this.#expired.abort();
      this.cancel('timeout');
    });
    try {
      this.#halted.signal.throwIfAborted();
      await this.#schedule();
      return this.#end();
    } catch (error) {
      if (this.#halted.signal.aborted) return undefined;
      throw error;
    } finally {
      this.#limit.end();
      this.halt();
    }
  }

  /** Extends deadlines by the time that runs waited while no process held the graph. */
  async #restoreWaits(): Promise<void> {
    const now = this.#deps.clock.now();
    const found = await this.#deps.subagents.waitingOf(this.row.id);
    const since = (runs: typeof found) => Math.max(0, now - Math.min(now, ...runs.map(({ waiting }) => waiting.sinceMs)));
    for (const { runId } of found) this.#waiting.add(runId);
    for (const node of this.nodes.values())
      if (node.deadlineMs !== null) node.deadlineMs += since(found.filter(({ nodeId }) => nodeId === node.spec.id));
    this.#waitedMs += since(found);
  }

  /** Pauses the limits of graph and node from the first wait of a run to its end; the run's own limit applies and restarts after each wait. */
  #whileWaiting(runId: string, limit: Limit | undefined): () => number {
    let resumeTimers: (() => number)[] | undefined;
    let isOver = false;
    const waits = () => {
      if (!isOver) resumeTimers ??= [this.#limit, limit].map((one) => one?.stop() ?? (() => 0));
    };
    const forget = this.#deps.subagents.onWait(runId, waits);
    if (this.#waiting.delete(runId)) waits();
    // An interrupted run may have begun to wait after the waits were read, and before anything listened.
    else if (this.#isResumed)
      this.#deps.subagents
        .waitingOf(this.row.id)
        .then((found) => found.some((run) => run.runId === runId) && waits())
        .catch((error: unknown) => this.#deps.log.error({ err: error, runId }, 'Failed to read whether a run of a graph waits'));
    return () => {
      isOver = true;
      forget();
      const [graph, node] = resumeTimers ?? [];
      this.#waitedMs += graph?.() ?? 0;
      return node?.() ?? 0;
    };
  }

  /** Halts the graph in this process: it ended elsewhere, or continues in another process. */
  halt(): void {
    this.#halted.abort(new AppError('unavailable', 'The graph was halted in this process'));
    this.#wake.resolve();
  }

  /** Prevents new work; running work finishes on its own. A request of a person is already in the row. */
  cancel(reason: CancelReason): void {
    if (this.#reason !== null) return;
    this.#reason = reason;
    this.#cancelled.abort();
    this.#wake.resolve();
    if (reason !== 'manual')
      this.#deps.db
        .write(cancelGraph, { id: this.row.id, reason })
        .catch((error: unknown) => this.#deps.log.error({ err: error }, 'Failed to record the cancellation of a graph'));
  }

  /** Applies the answer of a person to a gate, after the row has it. */
  answered(nodeId: string, answer: 'approved' | 'denied', answerText: string): void {
    const node = this.nodes.get(nodeId);
    if (node === undefined) return;
    Object.assign(node, { answer, answerText });
    node.answered?.();
  }

  /** True while an approval gate waits for a person. */
  get waitsForAnswer(): boolean {
    return [...this.nodes.values()].some(({ answered }) => answered !== undefined);
  }

  /** Returns the question of an approval gate while it is pending. */
  questionOf(nodeId: string): string | undefined {
    const node = this.nodes.get(nodeId);
    return node?.answered === undefined ? undefined : headOf(this.#texts.questionOf(node), maxAsked);
  }

  get outputs(): Record<string, string | null> {
    return Object.fromEntries([...this.nodes].map(([id, { output }]) => [id, output]));
  }

  async #schedule(): Promise<void> {
    const host = this.#host();
    for (const node of this.nodes.values()) if (node.state === 'running') this.#begin(node, host);
    for (;;) {
      this.#wake = Promise.withResolvers();
      await this.#skip();
      for (const node of this.nodes.values()) {
        if (this.#reason !== null || this.#atWork >= this.#deps.concurrency()) break;
        if (node.state !== 'pending' || this.#running.has(node.spec.id) || this.#verdict(node) !== 'run') continue;
        if (this.#exhausted() === undefined) this.#begin(node, host);
      }
      if (this.#running.size === 0 && [...this.nodes.values()].every(({ state }) => isOver(state))) return;
      await Promise.race([...this.#running.values(), this.#wake.promise]);
      this.#halted.signal.throwIfAborted();
    }
  }

  /** Counts active nodes; those whose end is being written have already freed their slot. */
  get #atWork(): number {
    return [...this.#running.keys()].filter((id) => !isOver(this.nodes.get(id)?.state ?? 'skipped')).length;
  }

  #begin(node: LiveNode, host: NodeHost): void {
    const ended = runNode(node, host).finally(() => this.#running.delete(node.spec.id));
    this.#running.set(node.spec.id, ended);
    // Errors are handled where it is awaited; a halted graph does not wait.
    ended.catch(() => {});
  }

  #verdict(node: LiveNode) {
    return verdictOf(node.spec, this.spec.onFailure, (id) => this.nodes.get(id)?.state ?? 'skipped');
  }

  /** Skips nodes that cannot be reached any more, which may unblock others. */
  async #skip(): Promise<void> {
    const atMs = this.#deps.clock.now();
    const skipped: LiveNode[] = [];
    for (const node of this.nodes.values()) {
      // A node in a retry delay ends on its own.
      if (node.state !== 'pending' || this.#running.has(node.spec.id)) continue;
      const isSkipped = this.#reason !== null || this.#verdict(node) === 'skip';
      if (!isSkipped) continue;
      const error = this.#reason === null ? 'its dependencies did not complete' : `cancelled: ${this.#reason}`;
      Object.assign(node, { state: 'skipped', error, endedAtMs: atMs });
      skipped.push(node);
    }
    if (skipped.length === 0) return;
    await this.#save(skipped);
    for (const node of skipped) this.#events.updated(node);
  }

  #end(): LiveEnd {
    const reason = this.#reason;
    const hasResult = leavesOf(this.spec.nodes).some(({ id }) => this.nodes.get(id)?.state === 'completed');
    const state = reason === 'manual' || reason === 'killed' ? 'cancelled' : hasResult ? 'completed' : 'failed';
    return { state, reason };
  }

  #exhausted(): 'timeout' | 'budget' | undefined {
    if (this.#expired.signal.aborted) return 'timeout';
    const { budget } = this.spec;
    if (budget === undefined) return undefined;
    const nodes = [...this.nodes.values()];
    const tokens = nodes.reduce((sum, node) => sum + node.tokens, 0);
    const cost = nodes.reduce((sum, node) => sum + node.costNano, 0) / 1e9;
    if (tokens < (budget.maxTokens ?? Infinity) && cost < (budget.maxCost ?? Infinity)) return undefined;
    this.cancel('budget');
    return 'budget';
  }

  async #save(nodes: readonly LiveNode[], inbox: readonly InboxMessage[] = []): Promise<void> {
    const delivered = await this.#deps.db.write(this.#deps.operations.move, {
      claim: this.#claim,
      graphId: this.row.id,
      changes: nodes.map(changeOf),
      inbox,
      ...(this.#waitedMs !== this.#savedWaitedMs && { waitedMs: (this.#savedWaitedMs = this.#waitedMs) }),
    });
    if (delivered === undefined) this.halt();
    this.#halted.signal.throwIfAborted();
    for (const message of inbox) if (delivered?.includes(message.id) === true) this.#deps.inbox.announce(message);
  }

  #host(): NodeHost {
    const { clock, subagents, db } = this.#deps;
    const common = {
      clock,
      halted: this.#halted.signal,
      expired: this.#expired.signal,
      cancelled: this.#cancelled.signal,
      save: (nodes: readonly LiveNode[], inbox?: readonly InboxMessage[]) => this.#save(nodes, inbox),
      over: () => this.#wake.resolve(),
      announce: (node: LiveNode) => this.#events.updated(node),
      phase: (node: LiveNode, phase: Phase) => this.#events.phase(node, phase),
    };
    return {
      ...common,
      fence: (text, from, clean) => this.#texts.fenced(text, from, clean),
      own: (text) => this.#texts.own(text),
      exhausted: () => this.#exhausted(),
      taskOf: (node) => this.#texts.taskOf(node),
      start: (node, agentTask, key, conversationOf) => this.#start(node, agentTask, key, conversationOf),
      ended: (runId) => subagents.ended(runId, this.#halted.signal),
      whileWaiting: (runId, limit) => this.#whileWaiting(runId, limit),
      kill: async (runId) => {
        try {
          await subagents.kill(runId, this.#call());
        } catch (error) {
          this.#deps.log.error({ err: error, runId }, 'Failed to stop a run of a graph');
        }
      },
      ask: (node) =>
        askPerson(node, {
          ...common,
          question: (asking, kind) => this.#question(asking, kind),
          expire: ({ spec }) => db.write(answerGate, { graphId: this.row.id, nodeId: spec.id, answer: 'expired', text: null, atMs: null }),
        }),
      messagesOf: (node) => (this.row.nodeProgress === 1 ? [this.#addressed(nodeMessage(this.row, node, this.#ref, clock.now()))] : []),
    };
  }

  #question(node: LiveNode, kind: 'ask' | 'reminder'): InboxMessage {
    const { endpoints, chats, clock } = this.#deps;
    const chat = chatIn(this.#announce);
    const text = this.#texts.questionOf(node);
    if (chat === undefined) return questionMessage(this.row, node, kind, text, this.#ref, clock.now());
    const code = chats.gateCode({ graphId: this.row.id, nodeId: node.spec.id });
    const how = `Decide with the code ${code}; without an answer the node fails.`;
    const atMs = clock.now();
    const lifeMs = node.deadlineMs === null ? undefined : Math.max(0, node.deadlineMs - atMs);
    return endpoints.address(questionMessage(this.row, node, kind, text, this.#ref, atMs, how), chat, { buttons: chats.buttonsOf(code), lifeMs });
  }

  #addressed(message: InboxMessage): InboxMessage {
    const chat = chatIn(this.#announce);
    return chat === undefined ? message : this.#deps.endpoints.address(message, chat);
  }

  get #part(): PartOfRoot {
    const { id, rootRunId } = this.row;
    if (rootRunId === null) throw new Error(`${id} runs without a root`);
    if (this.#requester === undefined) return { rootRunId };
    const { runId, leaseId, depth } = this.#requester;
    return { rootRunId, ...(runId !== null && leaseId !== null && { run: { runId, leaseId, depth } }) };
  }

  get #ref(): string | null {
    return this.#announce.to === 'conversation' ? this.#announce.conversationRef : null;
  }

  async #start(node: LiveNode, { agentId, task, model, maxSteps }: AgentTask, key: string, conversationOf: string | undefined): Promise<string> {
    const { id, principalId, tokenId } = this.row;
    const { rootRunId } = this.#part;
    const asked = this.#requester;
    const { runId } = await this.#deps.subagents.start({
      key: `${id}/${node.spec.id}/${key}`,
      agentId: agentId ?? this.#defaultAgentId,
      principalId,
      tokenId,
      rootRunId,
      parentLeaseId: asked?.leaseId ?? null,
      parentRunId: asked?.runId ?? undefined,
      depth: (asked?.depth ?? 0) + 1,
      task,
      shownTask: this.#texts.shownTaskOf(node),
      model,
      maxSteps,
      timeoutMs: node.deadlineMs === null ? undefined : Math.max(0, node.deadlineMs - this.#deps.clock.now()) + runGraceMs,
      graph: { graphId: id, nodeId: node.spec.id },
      ...(asked !== undefined && { asked: { origin: asked.origin, bounds: asked.bounds, agentId: this.row.agentId }, caps: new Set(asked.caps) }),
      conversationOf,
      endpoint: chatIn(this.#announce),
    });
    return runId;
  }

  get #defaultAgentId(): string {
    if (this.#requester !== undefined) return this.row.agentId;
    return parseDefinition(this.row.definitionJson).defaultAgentId ?? this.#deps.defaultAgentId;
  }

  /** Creates a call with the identity of the graph's owner. */
  #call(): CallContext {
    const { tokenId, principalId } = this.row;
    const identity = this.#deps.identityOf(tokenId, principalId) ?? { tokenId, principalId, scopes: ['rpc'] };
    return { identity, traceId: newTraceId(), requestId: newId('rq'), signal: this.#halted.signal, transport: 'process' };
  }
}
