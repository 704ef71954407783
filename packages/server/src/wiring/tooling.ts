import type { AgentsApi } from '../features/agents/agents/api.ts';
import type { AutonomyApi } from '../features/delegation/autonomy/api.ts';
import { askApproval, withdrawApproval } from '../transactions/ask-approval.ts';
import { createApprovals } from '../features/access/approvals/approvals.ts';
import { createMcp } from '../features/agents/mcp/mcp.ts';
import { startInJail } from '../features/agents/mcp/connection/start-process.ts';
import { createSkills } from '../features/knowledge/skills/skills.ts';
import { createShell } from '../features/environment/shell/shell.ts';
import { printSessionKey, parseSessionKey } from '../features/conversations/sessions/conversation.ts';
import { createWeb } from '../features/environment/web/web.ts';
import { createWorkspace, type WorkspaceDeps } from '../features/environment/workspace/workspace.ts';
import type { ApprovalsDeps } from '../features/access/approvals/approvals.ts';
import { createEgress } from '../kernel/egress.ts';
import { type Jail, openJail } from '../kernel/jail.ts';
import { type Clock, systemClock } from '../kernel/clock.ts';
import type { Db } from '../kernel/db/db.ts';
import type { EventBus } from '../kernel/event-bus.ts';
import type { FenceLabel } from '../runtime/fence.ts';
import type { ServerOptions } from '../server-handle.ts';

export interface ToolingDeps {
  /** Owns everything built here. */
  readonly building: AsyncDisposableStack;
  readonly options: ServerOptions;
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly agents: AgentsApi;
  readonly fence: (text: string, label: FenceLabel) => string;
  readonly capabilities: ApprovalsDeps['capabilities'];
  readonly asking: Pick<ApprovalsDeps, 'announceMessage' | 'resume'>;
  readonly isStopped: AutonomyApi['isStopped'];
  readonly disk: WorkspaceDeps['disk'];
}

/** Creates the tools of agents: the web, skills, MCP servers, workspaces, commands, and the approvals before all of them. */
export async function createTooling({ building, options, db, bus, clock, agents, fence, capabilities, asking, isStopped, disk }: ToolingDeps) {
  const { config, home, log, overrides = {} } = options;
  const egressFor = (allowHosts: readonly string[]) => createEgress({ clock, allowHosts, ...overrides.egress });
  const web = createWeb({ clock, search: config.webSearch, links: config.links, env: options.env, egressFor, fence });
  const skills = building.use(
    await createSkills({
      db,
      bus,
      clock,
      log: log.module('skills'),
      agents,
      config: config.skills,
      sharedDir: config.skills.sharedDir ?? home.skillsDir,
      env: options.env,
      egress: overrides.archives ?? egressFor([]),
      fence,
      hideSecrets: options.redactor.hide,
    }),
  );
  // Determined when something is about to run in it.
  let jail: Promise<Jail> | undefined;
  // Processes live in real time, whatever clock the rest uses.
  const openedJail = () => (jail ??= openJail({ clock: systemClock, log: log.module('jail') }));
  building.defer(async () => (await jail)?.[Symbol.asyncDispose]());
  const mcp = building.use(
    await createMcp({
      db,
      bus,
      clock,
      log: log.module('mcp'),
      config: config.mcp,
      version: options.version,
      redactor: options.redactor,
      key: options.installKey.derive('mcp'),
      startProcess: startInJail(openedJail),
      dial: overrides.egress,
    }),
  );
  const workspace = building.use(
    createWorkspace({
      db,
      bus,
      clock,
      log: log.module('workspace'),
      agents,
      path: options.env['PATH'],
      hideSecrets: options.redactor.hide,
      config: config.workspaces,
      disk,
      processClock: systemClock,
    }),
  );
  const approvals = building.use(
    await createApprovals({
      db,
      bus,
      clock,
      log: log.module('approvals'),
      config: config.approvals,
      hideSecrets: options.redactor.hide,
      printKey: (key) => printSessionKey(parseSessionKey(key)),
      capabilities,
      askApproval,
      withdrawApproval,
      ...asking,
    }),
  );
  const shell = building.use(
    createShell({
      clock,
      config: config.exec,
      jail: openedJail,
      capacity: workspace.capacity,
      env: options.env,
      agentOf: (agentId) => agents.find(agentId)?.config,
      isStopped,
      taints: workspace.taints,
    }),
  );
  return { web, skills, mcp, workspace, approvals, shell, openedJail };
}
