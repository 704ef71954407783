import { t } from '../language.ts';
import { useSession } from '../data/context.ts';
import { Tabs } from './tabs.tsx';

/** The pages of what ran and what will run: one family under one entry of the navigation. */
export const executionPages = [
  { to: '/executions', name: t('All') },
  { to: '/runs', name: t('Runs') },
  { to: '/graphs', name: t('Graphs') },
  { to: '/schedule', name: t('Schedule') },
  { to: '/webhooks', name: t('Webhooks'), adminOnly: true },
] as const;

export type ExecutionPage = (typeof executionPages)[number]['to'];

export function ExecutionTabs({ current }: { readonly current: ExecutionPage }) {
  const { admin } = useSession();
  return (
    <Tabs
      label={t('Executions')}
      tabs={executionPages.flatMap((page) =>
        !('adminOnly' in page) || admin ? [{ to: page.to, name: page.name, current: page.to === current }] : [],
      )}
    />
  );
}
