import { actionsOf, ChannelEndpoint, type PlatformActions } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import type { Tool, ToolContext } from '../../../runtime/tool.ts';
import type { Coordinates } from '../outgoing/api.ts';
import type { RunAction } from './platform-actions.ts';

export interface ActionToolsDeps {
  readonly run: RunAction;
  /** Returns the endpoint of a conversation; undefined when it is not in a channel. */
  readonly endpointOf: (conversationRef: string) => Promise<Coordinates['endpoint'] | undefined>;
}

/** `<platform>_action` of platforms that have actions: reading is free, the rest needs what outward calls need, and what cannot be undone a person. */
export const createActionTools = (platforms: readonly string[], deps: ActionToolsDeps): readonly Tool[] =>
  platforms.flatMap((platform) => {
    const actions = actionsOf(platform);
    return Object.keys(actions).length === 0 ? [] : [createActionTool(platform, actions, deps)];
  });

function createActionTool(platform: string, actions: PlatformActions, { run, endpointOf }: ActionToolsDeps): Tool {
  const riskOf = (action: string) => actions[action]?.risk ?? 'destructive';
  const args = z.strictObject({
    action: z.enum(Object.keys(actions)),
    params: z.record(z.string(), z.unknown()).default({}).describe('Parameters of the action.'),
    to: ChannelEndpoint.optional().describe('Another conversation of the same user with you; the one that you are talking in when absent.'),
  });
  type Args = z.output<typeof args>;

  async function endpoint(to: Args['to'], { conversationRef }: ToolContext) {
    const found = to ?? (await endpointOf(conversationRef));
    if (found === undefined)
      throw new AppError('precondition_failed', 'This conversation is not in a channel: name another one with `to`', { param: 'to' });
    return found;
  }

  const tool: Tool<typeof args> = {
    name: `${platform}_action`,
    description: `Carries out an action of ${platform} on a conversation. ${Object.entries(actions).map(lineOf).join('; ')}.`,
    args,
    risk: 'outward',
    effect: 'once',
    capability: 'orch:message',
    timeoutMs: 60_000,
    onlyReads: ({ action }) => riskOf(action) === 'read',
    mustAsk: ({ action }) =>
      riskOf(action) === 'destructive' ? `${platform}: ${action} cannot be undone, or takes something from people` : undefined,
    describe: ({ action, to }) => `${platform}: ${action}${to === undefined ? '' : ` in ${to.conversationId}`}`,
    async run({ action, params, to }, context) {
      const result = await run(platform, { action, endpoint: await endpoint(to, context), params }, context.call);
      return { content: JSON.stringify(result), outside: { source: `${platform} action` } };
    },
  };
  return tool;
}

/** Returns an action with the names of its parameters. */
function lineOf([name, { summary, params }]: readonly [string, PlatformActions[string]]): string {
  const keys = Object.keys(params().shape);
  return `${name}${keys.length === 0 ? '' : ` (${keys.join(', ')})`}: ${summary.replace(/\.$/, '')}`;
}
