import { t } from '../../language.ts';
import type { Setting } from '../../ui/schema/setting.ts';

export interface ChannelGroup {
  readonly title: string;
  readonly about: string;
  readonly settings: readonly Setting[];
}

const groups: readonly (Omit<ChannelGroup, 'settings'> & { readonly keys: readonly string[] })[] = [
  { title: t('People'), about: t('People who may write directly, and those who command.'), keys: ['dm', 'owners', 'bots', 'maxBotExchanges'] },
  { title: t('Groups'), about: t('Which groups are answered, and when.'), keys: ['groups'] },
  { title: t('Quiet hours'), about: t('When nothing is sent that nobody waits for.'), keys: ['quietHours', 'quietHoursOf'] },
  {
    title: t('Answers'),
    about: t('Which agent answers, and how.'),
    keys: ['agent', 'agents', 'streaming', 'typing', 'ackReaction', 'maxParts', 'maxAgeMs', 'onUnknown'],
  },
];
/** The list of channels switches it; a channel of another platform is another channel. */
const hidden = ['enabled', 'type'];

/** Sorts the keys of a channel by subject; those of its platform come last. */
export function groupChannelKeys(settings: readonly Setting[]): readonly ChannelGroup[] {
  const nameOf = ({ path }: Setting): string => String(path.at(-1));
  const known = groups.map(({ keys, ...group }) => ({
    ...group,
    settings: keys.flatMap((key) => settings.filter((setting) => nameOf(setting) === key)),
  }));
  const rest = settings.filter((setting) => !hidden.includes(nameOf(setting)) && !groups.some(({ keys }) => keys.includes(nameOf(setting))));
  return [...known, { title: t('Connection'), about: t('How the platform is reached.'), settings: rest }].filter(
    (group) => group.settings.length > 0,
  );
}
