import * as z from 'zod';
import { type Method, method } from '../method.ts';
import { ircActions } from '../shared/actions/irc.ts';
import type { PlatformAction, PlatformActions } from '../shared/platform-action.ts';
import { ChannelEndpoint } from '../shared/session.ts';

/** The actions of each platform that has some: a platform is one import and one line here. */
export const actionsByPlatform = {
  irc: ircActions,
} as const satisfies Readonly<Record<string, PlatformActions>>;

export type ActionPlatform = keyof typeof actionsByPlatform;

/** Returns the actions of a platform; none for an unknown one. */
export const actionsOf = (channelType: string): PlatformActions =>
  Object.hasOwn(actionsByPlatform, channelType) ? actionsByPlatform[channelType as ActionPlatform] : {};

/** Parameters of `<platform>.action`: all but `action` and `endpoint` are checked by the row of the action. */
const paramsOf = (actions: PlatformActions) =>
  z
    .strictObject({
      action: z.enum(Object.keys(actions)).describe(`What to do, with its parameters: ${linesOf(actions).join('; ')}.`),
      endpoint: ChannelEndpoint.describe('A conversation with an agent, as for `message.send`.'),
      ...ownParamsOf(actions),
    })
    .check(({ value: { action, endpoint: _endpoint, ...own }, issues }) => {
      const checked = actions[action]?.params().safeParse(own);
      for (const issue of checked?.error?.issues ?? []) {
        const { path, message } = issue;
        if (issue.code === 'unrecognized_keys') issues.push({ code: issue.code, keys: issue.keys, path, message, input: own });
        else issues.push({ code: 'custom', path, message, input: own });
      }
    });

/** Returns the parameters that some action takes. */
function ownParamsOf(actions: PlatformActions): Record<string, z.ZodOptional<z.ZodUnknown>> {
  const takenBy = new Map<string, string[]>();
  for (const [name, { params }] of Object.entries(actions))
    for (const key of Object.keys(params().shape)) takenBy.set(key, [...(takenBy.get(key) ?? []), `\`${name}\``]);
  return Object.fromEntries(
    [...takenBy].map(([key, names]) => [
      key,
      z
        .unknown()
        .optional()
        .describe(`Of ${names.join(', ')}.`),
    ]),
  );
}

const linesOf = (actions: PlatformActions): string[] => Object.entries(actions).map(([name, action]) => lineOf(name, action));

function lineOf(name: string, { risk, summary, params }: PlatformAction): string {
  const keys = Object.entries(params().shape).map(([key, one]) => (one instanceof z.ZodOptional || one instanceof z.ZodDefault ? `${key}?` : key));
  return `\`${name}\`${keys.length === 0 ? '' : ` (${keys.join(', ')})`}: ${summary.replace(/\.$/, '')} [${risk}]`;
}

interface Example {
  readonly params: { readonly action: string; readonly endpoint: z.input<typeof ChannelEndpoint>; readonly [name: string]: unknown };
  readonly result: Readonly<Record<string, unknown>>;
}

const actionMethod = (platform: ActionPlatform, example: Example) =>
  method({
    scope: 'admin',
    risk: 'destructive',
    summary: `Carries out an action that this platform has (${platform}).`,
    params: () => paramsOf(actionsByPlatform[platform]),
    // Each result is checked by the row of its action.
    result: () => z.looseObject({}),
    errors: ['not_found', 'precondition_failed', 'denied', 'unavailable', 'rate_limited'],
    examples: [example],
    since: '0.1.0',
  });

/** `<platform>.action` of each platform: one line for each, with an example. */
export const platformActions = {
  'irc.action': actionMethod('irc', {
    params: {
      action: 'topic',
      endpoint: { channelType: 'irc', channelInstanceId: 'libera', conversationId: '#lab', conversationKind: 'shared' },
      topic: 'Release on Monday',
    },
    result: { topicSet: true, channel: '#lab' },
  }),
} satisfies Readonly<Record<`${ActionPlatform}.action`, Method>>;
