import { t } from '../../language.ts';
import type { Setting } from '../../ui/schema/setting.ts';

interface Group {
  readonly title: string;
  readonly about: string;
  readonly keys: readonly string[];
  /** A tab of the agent that belongs to it, and what it is for. */
  readonly link?: { readonly tab: string; readonly text: string };
}

const groups: readonly Group[] = [
  {
    title: t('Model'),
    about: t('Which models answer, and how.'),
    keys: ['name', 'model', 'fallbackModels', 'temperature', 'maxTokens', 'cacheRetention', 'operationModels'],
  },
  {
    title: t('Prompt'),
    about: t('Text that the model gets before each conversation.'),
    keys: ['instructions', 'workspace'],
    link: { tab: 'workspace', text: t('SOUL.md, AGENTS.md, USER.md and the other prompt files are edited in the workspace') },
  },
  {
    title: t('Tools and approvals'),
    about: t('What the agent may do, and which calls wait for a person.'),
    keys: ['tools', 'originTools', 'approvals', 'exec', 'background', 'skills'],
    link: { tab: 'tools', text: t('The tab Tools shows what the policy allows for each origin') },
  },
  { title: t('Memory'), about: t('What the agent remembers, and when a conversation starts over.'), keys: ['memory', 'session'] },
  {
    title: t('Budgets and limits'),
    about: t('What the agent may spend, and how long it may work.'),
    keys: ['maxSteps', 'turnTimeoutMs', 'modelTimeoutMs', 'maxConcurrentRuns', 'budgets', 'circuitBreaker'],
  },
  { title: t('Heartbeat'), about: t('Whether the agent checks on things on its own.'), keys: ['heartbeat'] },
  { title: t('Notifications'), about: t('What programs may send to people who write to the agent.'), keys: ['notification'] },
  { title: t('Delegation'), about: t('What the agent may start beyond its own turn.'), keys: ['autonomy'] },
];

export interface AgentGroup extends Omit<Group, 'keys'> {
  readonly settings: readonly Setting[];
}

/** Sorts the keys of an agent by subject; keys that are new to the dashboard come last. */
export function groupAgentKeys(settings: readonly Setting[]): readonly AgentGroup[] {
  const nameOf = ({ path }: Setting): string => String(path.at(-1));
  const known = groups.map(({ keys, ...group }): AgentGroup => ({
    ...group,
    settings: keys.flatMap((key) => settings.filter((setting) => nameOf(setting) === key)),
  }));
  const rest = settings.filter((setting) => !groups.some(({ keys }) => keys.includes(nameOf(setting))));
  return [...known, { title: t('More'), about: t('Everything else.'), settings: rest }].filter((group) => group.settings.length > 0);
}
