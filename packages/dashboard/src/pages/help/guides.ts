import { t } from '../../language.ts';
/** Guides that pages link, from the documentation of this version; each is loaded when it is read. */
export const guides = {
  agents: { title: t('Agents with tools'), load: () => import('../../../../../docs/guide/agents.md?raw') },
  channels: { title: t('Channels'), load: () => import('../../../../../docs/guide/channels.md?raw') },
  dashboard: { title: t('The dashboard'), load: () => import('../../../../../docs/guide/dashboard.md?raw') },
  delegation: { title: t('Sub-agents and graphs'), load: () => import('../../../../../docs/guide/delegation.md?raw') },
  schedule: { title: t('Jobs, heartbeats and webhooks'), load: () => import('../../../../../docs/guide/schedule.md?raw') },
} as const;
export type GuideName = keyof typeof guides;

export function isGuide(name: string): name is GuideName {
  return Object.hasOwn(guides, name);
}

/** Returns the text of a guide without its title, its pictures, and the addresses of links to other files. */
export function shownText(text: string): string {
  return text
    .replace(/^# .*\n/, '')
    .replaceAll(/^.*!\[[^\]]*\]\([^)]*\).*\n/gm, '')
    .replaceAll(/\[([^\]]+)\]\((?!https?:)[^)]*\)/g, '$1')
    .trim();
}
