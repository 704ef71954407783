import type * as z from 'zod';
import type { Method } from './method.ts';
import { adminApproval } from './methods/admin-approval.ts';
import { agent } from './methods/agent.ts';
import { agents } from './methods/agents.ts';
import { autonomy } from './methods/autonomy.ts';
import { background } from './methods/background.ts';
import { browserRecordings } from './methods/browser-recordings.ts';
import { browser } from './methods/browser.ts';
import { capabilities } from './methods/capabilities.ts';
import { config } from './methods/config.ts';
import { context } from './methods/context.ts';
import { cron } from './methods/cron.ts';
import { daemon } from './methods/daemon.ts';
import { documents } from './methods/documents.ts';
import { env } from './methods/env.ts';
import { evaluation } from './methods/eval.ts';
import { gateway } from './methods/gateway.ts';
import { graph } from './methods/graph.ts';
import { heartbeat } from './methods/heartbeat.ts';
import { inbox } from './methods/inbox.ts';
import { knowledge } from './methods/knowledge.ts';
import { lease } from './methods/lease.ts';
import { link } from './methods/link.ts';
import { mcp } from './methods/mcp.ts';
import { memory } from './methods/memory.ts';
import { memoryLife } from './methods/memory-life.ts';
import { message } from './methods/message.ts';
import { models } from './methods/models.ts';
import { multimodal } from './methods/multimodal.ts';
import { notification } from './methods/notification.ts';
import { platformActions } from './methods/platform-actions.ts';
import { obs } from './methods/obs.ts';
import { obsReplay } from './methods/obs-replay.ts';
import { prompts } from './methods/prompts.ts';
import { providers } from './methods/providers.ts';
import { rpc } from './methods/rpc.ts';
import { run } from './methods/run.ts';
import { scheduler } from './methods/scheduler.ts';
import { session } from './methods/session.ts';
import { sessionRuns } from './methods/session-runs.ts';
import { skills } from './methods/skills.ts';
import { system } from './methods/system.ts';
import { subagent } from './methods/subagent.ts';
import { tokens } from './methods/tokens.ts';
import { tools } from './methods/tools.ts';
import { usage } from './methods/usage.ts';
import { channels } from './methods/channels.ts';
import { delivery } from './methods/delivery.ts';
import { webhooks } from './methods/webhooks.ts';
import { workspace } from './methods/workspace.ts';

/** Every registered JSON-RPC method (json-rpc.md §4). Any other method fails with -32601. */
export const contract = {
  ...system,
  ...prompts,
  ...providers,
  ...rpc,
  ...adminApproval,
  ...agent,
  ...agents,
  ...autonomy,
  ...background,
  ...browser,
  ...browserRecordings,
  ...capabilities,
  ...config,
  ...context,
  ...cron,
  ...daemon,
  ...documents,
  ...env,
  ...evaluation,
  ...gateway,
  ...graph,
  ...heartbeat,
  ...inbox,
  ...knowledge,
  ...lease,
  ...link,
  ...mcp,
  ...memory,
  ...memoryLife,
  ...models,
  ...obs,
  ...obsReplay,
  ...run,
  ...scheduler,
  ...session,
  ...sessionRuns,
  ...skills,
  ...subagent,
  ...tokens,
  ...tools,
  ...usage,
  ...webhooks,
  ...channels,
  ...delivery,
  ...message,
  ...multimodal,
  ...notification,
  ...platformActions,
  ...workspace,
};

export type Contract = typeof contract;
export type MethodName = keyof Contract;
/** The same methods as one type, for code that treats all alike: comparing 200 schemas with it takes the compiler seconds. */
export const methodsByName = contract as object as Readonly<Record<MethodName, Method>>;
/** Parameters as a caller writes them: defaults may be omitted. */
export type ParamsInput<M extends MethodName> = z.input<Contract[M]['params']>;
/** Parameters as a handler receives them. */
export type Params<M extends MethodName> = z.output<Contract[M]['params']>;
/** Result as a handler returns it. */
export type ResultInput<M extends MethodName> = z.input<Contract[M]['result']>;
/** Result as a caller receives it. */
export type Result<M extends MethodName> = z.output<Contract[M]['result']>;
