import { t } from '../../language.ts';
import { useSession } from '../../data/context.ts';
import { AdminOnly, Empty, Page } from '../../ui/parts.tsx';
import { ExecutionTabs } from '../../ui/execution-tabs.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { HeartbeatsTab } from './heartbeats-tab.tsx';
import { JobsTab } from './jobs-tab.tsx';

/** Scheduled work of agents: jobs at `/schedule`, the runs of one at `/schedule/<job id>`, a new one at `/schedule/new`, heartbeats at `/schedule/heartbeats`. */
export function SchedulePage({ rest }: { readonly rest: string | undefined }) {
  const { admin } = useSession();
  if (rest === 'heartbeats' && !admin) return <AdminOnly title={t('Schedule')} />;
  return (
    <Page wide help="schedule" title={t('Schedule')} lead={t('What agents do automatically, and when.')}>
      <ExecutionTabs current="/schedule" />
      {admin && (
        <Tabs
          label={t('Schedule sections')}
          tabs={[
            { to: '/schedule', name: t('Jobs'), current: rest !== 'heartbeats' },
            { to: '/schedule/heartbeats', name: t('Heartbeats'), current: rest === 'heartbeats' },
          ]}
        />
      )}
      {rest === undefined || rest === 'new' || rest.startsWith('cj_') ? (
        <JobsTab named={rest} />
      ) : rest === 'heartbeats' ? (
        <HeartbeatsTab />
      ) : (
        <Empty title={t('No such tab')} />
      )}
    </Page>
  );
}
