import { routes } from '@gatehouse/contract';
import type { AgentsApi } from '../features/agents/agents/api.ts';
import type { AutonomyApi } from '../features/delegation/autonomy/api.ts';
import { askApproval, withdrawApproval } from '../transactions/ask-approval.ts';
import { createApprovals } from '../features/access/approvals/approvals.ts';
import type { ApprovalChats } from '../features/channels/approvals/api.ts';
import { createMcp } from '../features/agents/mcp/mcp.ts';
import { startInJail } from '../features/agents/mcp/connection/start-process.ts';
import { createSkills } from '../features/knowledge/skills/skills.ts';
import { createShell } from '../features/environment/shell/shell.ts';
import { printSessionKey, parseSessionKey } from '../features/conversations/sessions/conversation.ts';
import { createWeb } from '../features/environment/web/web.ts';
import { createWorkspace, type WorkspaceDeps } from '../features/environment/workspace/workspace.ts';
import type { ApprovalsDeps } from '../features/access/approvals/approvals.ts';
import { publicUrl } from '../gateway/public-url.ts';
import type { IdentityOf } from '../kernel/call-context.ts';
import { createEgress } from '../kernel/egress.ts';
import { type Jail, openJail } from '../kernel/jail.ts';
import { systemClock } from '../kernel/clock.ts';
import type { FenceText } from '../runtime/fence.ts';
import type { InboxApi } from '../features/unattended/inbox/api.ts';
import type { Sessions } from '../features/conversations/sessions/sessions.ts';
import { createSessionTools } from '../features/conversations/sessions/tool.ts';
import { createToolSet, type ToolSet } from '../runtime/tool-set.ts';
import type { Tool } from '../runtime/tool.ts';
import type { Assembly } from './assembly.ts';
import type { Channels } from './channels.ts';
import type { Delegation } from './delegation.ts';
import type { Foundation } from './foundation.ts';
import type { Late } from './late.ts';
import type { Stops } from './stops.ts';
import type { Unattended } from './unattended.ts';

export interface ToolingWiring {
  readonly agents: AgentsApi;
  readonly fence: FenceText;
  readonly autonomy: ApprovalsDeps['capabilities'] & { readonly api: Pick<AutonomyApi, 'isStopped'> };
  readonly inbox: InboxApi;
  readonly chats: ApprovalChats;
  readonly identityOf: IdentityOf;
  /** Address of the listener; null while there is none. */
  readonly address: () => string | null;
  readonly stops: Late<Stops>;
  readonly disk: WorkspaceDeps['disk'];
}

export type Tooling = Awaited<ReturnType<typeof wireTooling>>;

/** Wires what agents use: the web, skills, MCP servers, workspaces, commands, and the approvals before all of them. */
export async function wireTooling(
  { building, options, environment, bootId, live, core, clock }: Assembly,
  { agents, fence, autonomy, inbox, identityOf, address, stops, disk, chats }: ToolingWiring,
) {
  const { config, home, log, overrides = {} } = options;
  const egressFor = (allowHosts: readonly string[]) => createEgress({ clock, allowHosts, ...overrides.egress });
  const web = createWeb({ clock, search: live(({ webSearch }) => webSearch), links: live(({ links }) => links), env: environment, egressFor, fence });
  const skills = building.use(
    await createSkills({
      ...core('skills'),
      agents,
      config: live((whole) => whole.skills),
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
  let seen: Pick<Jail, 'unavailable' | 'bounds'> | undefined;
  const openedJail = () =>
    (jail ??= openJail({ clock: systemClock, log: log.module('jail') }).then(
      (opened) => (seen = opened),
      (error: unknown) => {
        // Without a free descriptor nothing is known about it.
        jail = undefined;
        throw error;
      },
    ));
  /** What is known of the jail; looking for it takes processes. */
  const jailState = () => {
    if (seen === undefined) return { state: 'unused' as const };
    const { unavailable, bounds } = seen;
    return unavailable === undefined ? { state: 'ready' as const, bounds } : { state: 'unavailable' as const, reason: unavailable };
  };
  building.defer(async () => (await jail)?.[Symbol.asyncDispose]());
  const mcp = building.use(
    await createMcp({
      ...core('mcp'),
      config: live(({ mcp: section }) => section),
      version: options.version,
      redactor: options.redactor,
      key: options.installKey.derive('mcp'),
      startProcess: startInJail(openedJail),
      dial: overrides.egress,
      inbox,
      identityOf,
      defaultAgentId: () => config.routing.defaultAgentId,
      redirectUri: () => `${publicUrl(options.configuration.current.gateway, address())}${routes.oauthCallback.path}`,
    }),
  );
  const workspace = building.use(
    createWorkspace({
      ...core('workspace'),
      bootId,
      agents,
      path: options.env['PATH'],
      hideSecrets: options.redactor.hide,
      config: live(({ workspaces }) => workspaces),
      disk,
      processClock: systemClock,
    }),
  );
  const approvals = building.use(
    await createApprovals({
      ...core('approvals'),
      bootId,
      config: live((whole) => whole.approvals),
      hideSecrets: options.redactor.hide,
      printKey: (key) => printSessionKey(parseSessionKey(key)),
      capabilities: autonomy,
      askApproval,
      withdrawApproval,
      announceMessage: inbox.announce,
      chats,
      resume: (approvalId) => stops.value.approvalDecided(approvalId),
    }),
  );
  const shell = building.use(
    createShell({
      ...core('shell'),
      processClock: systemClock,
      hideSecrets: options.redactor.hide,
      config: live(({ exec }) => exec),
      jail: openedJail,
      capacity: workspace.capacity,
      env: environment,
      agentOf: (agentId) => agents.find(agentId)?.config,
      isStopped: autonomy.api.isStopped,
      taints: workspace.taints,
    }),
  );
  return { web, skills, mcp, workspace, approvals, shell, openedJail, jailState };
}

export interface ToolSetWiring {
  readonly foundation: Pick<Foundation, 'metrics'>;
  readonly tooling: Tooling;
  readonly memory: readonly Tool[];
  readonly sessions: Pick<Sessions, 'methods' | 'isTainted'>;
  readonly background: Tool;
  readonly documents: Tool;
  readonly multimodal: { readonly tools: () => readonly Tool[] };
  readonly browser: { readonly tools: () => readonly Tool[] };
  readonly knowledge: { readonly tools: () => readonly Tool[] };
  readonly unattended: Late<Unattended>;
  readonly delegation: Late<Delegation>;
  readonly channels: Late<Channels>;
}

/** Joins the tools of all features, with every call metered. */
export function wireToolSet({ options }: Assembly, { foundation: { metrics }, tooling, sessions, ...deps }: ToolSetWiring): ToolSet {
  const { web, skills, mcp, workspace, shell } = tooling;
  return createToolSet(
    [
      ...workspace.tools,
      ...web.tools,
      ...deps.memory,
      ...createSessionTools(sessions.methods, sessions.isTainted),
      deps.background,
      deps.documents,
      ...(options.overrides?.tools ?? []),
    ],
    [
      shell.tools,
      mcp.api.tools,
      skills.api.tools,
      deps.multimodal.tools,
      deps.browser.tools,
      deps.knowledge.tools,
      () => deps.unattended.value.tools,
      () => deps.delegation.value.tools(),
      () => deps.channels.value.tools(),
    ],
    metrics.tool,
  );
}
