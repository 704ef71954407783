import { t, tx } from '../../language.ts';
import { type ReactNode, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { type Budget, type FirstRun, type StepName, stepNames, useFirstRun } from '../../data/first-run.ts';
import { count, money } from '../../data/format.ts';
import { PageLink } from '../../ui/link.tsx';
import { AdminOnly, Failure, Notice, Page, Skeleton } from '../../ui/parts.tsx';
import { AgentStep } from './agent-step.tsx';
import { BudgetStep } from './budget-step.tsx';
import { ClientStep } from './client-step.tsx';
import { HelloStep } from './hello-step.tsx';
import { ModelStep } from './model-step.tsx';
import { StepCard } from './step-card.tsx';

/** The checklist of a new installation. What is done is what the gateway says, so it is the same in every browser. */
export function StartPage() {
  const { admin } = useSession();
  return admin ? <Checklist /> : <AdminOnly title={t('Get started')} />;
}

const titles: Record<StepName, string> = {
  model: t('Connect a model'),
  hello: t('Say hello'),
  agent: t('Shape your agent'),
  client: t('Connect a client'),
  budget: t('Set a budget'),
};

function Checklist() {
  const { data, error, reload } = useFirstRun();
  const isDone = data !== undefined && data.done.size === stepNames.length;
  return (
    <Page
      title={t('Get started')}
      lead={
        isDone
          ? t('Everything is set up.')
          : t('From an empty installation to an agent that works for you. Only the first step is needed; the others can wait.')
      }
      actions={
        <PageLink to="/chat" className="button">
          {isDone ? t('Open the chat') : t('Skip for now')}
        </PageLink>
      }
    >
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {data === undefined ? error === undefined && <Skeleton lines={6} /> : <Steps data={data} reload={reload} />}
    </Page>
  );
}

function Steps({ data, reload }: { readonly data: FirstRun; readonly reload: () => void }) {
  // Undefined until the user opens or closes one: then the first step that is not done is open.
  const [selected, setSelected] = useState<StepName | 'none'>();
  const [greets, setGreets] = useState(false);
  const open = selected ?? stepNames.find((name) => !data.done.has(name)) ?? 'none';
  const next = (after: StepName): void => setSelected(stepNames.slice(stepNames.indexOf(after) + 1).find((name) => !data.done.has(name)) ?? 'none');
  const finish = (name: StepName): void => {
    reload();
    next(name);
  };
  const bodies: Record<StepName, () => ReactNode> = {
    model: () => (
      <ModelStep
        current={data.model}
        // While it is stored, the state changes step by step.
        onBegin={() => setSelected('model')}
        onConnected={() => {
          reload();
          setGreets(true);
          setSelected('hello');
        }}
      />
    ),
    hello: () =>
      data.model === undefined ? (
        <Notice>{t('Connect a model first: the built-in offline model has one answer for every question.')}</Notice>
      ) : (
        <HelloStep greets={greets} onAnswer={reload} onNext={() => next('hello')} onOther={() => setSelected('model')} />
      ),
    agent: () => <AgentStep folder={data.folder} onDone={() => finish('agent')} onLater={() => next('agent')} />,
    client: () => <ClientStep onNext={() => next('client')} />,
    budget: () => <BudgetStep budget={data.budget} isPriced={data.isPriced || data.model === undefined} onDone={() => finish('budget')} />,
  };
  return (
    <>
      <p className="start-progress">
        <progress max={stepNames.length} value={data.done.size} aria-label={t('Steps done')} />
        <span className="hint">{tx('{done} of {stepNames} done', { done: data.done.size, stepNames: stepNames.length })}</span>
      </p>
      <ol className="start-steps">
        {stepNames.map((name, index) => (
          <StepCard
            key={name}
            number={index + 1}
            title={titles[name]}
            summary={summaryOf(name, data)}
            done={data.done.has(name)}
            open={open === name}
            onToggle={() => setSelected(open === name ? 'none' : name)}
          >
            {bodies[name]()}
          </StepCard>
        ))}
      </ol>
    </>
  );
}

function summaryOf(name: StepName, { done, model, folder, budget }: FirstRun): string {
  const isDone = done.has(name);
  switch (name) {
    case 'model':
      return model ?? t('A vendor with your key, or a model server of this machine');
    case 'hello':
      return isDone ? t('Your model answers') : t('A first question and its answer');
    case 'agent':
      return isDone ? t('Its files are in {folder}', { folder }) : t('A folder, tools and rules from a template');
    case 'client':
      return isDone ? t('A client has its own token') : t('A coding tool or an SDK that uses your agent');
    case 'budget':
      return budget === undefined ? t('What may be spent in 24 hours') : budgetText(budget);
  }
}

function budgetText({ amount, unit, window, scope }: Budget): string {
  const limit = unit === 'usd' ? money(amount) : t('{amount} tokens', { amount: count(amount) });
  return t('At most {limit} {window} for {scope}', {
    limit,
    window: window === 'day' ? t('a day') : t('an hour'),
    scope: scope === 'all' ? t('all agents together') : t('your agent'),
  });
}
