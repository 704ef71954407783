import { t } from '../../language.ts';
import { Empty, Page } from '../../ui/parts.tsx';
import { EditorPage } from './editor-page.tsx';
import { ListPage } from './list-page.tsx';
import { RunPage } from './run-page.tsx';

/** `/graphs` lists saved graphs and runs, `/graphs/runs/<id>` shows a run, `/graphs/new` and `/graphs/edit/<id>` are the editor. */
export function GraphsPage({ rest }: { readonly rest: string | undefined }) {
  const [part, id, ...more] = rest?.split('/') ?? [];
  if (part === undefined) return <ListPage />;
  if (part === 'runs' && id !== undefined && more.length === 0) return <RunPage key={id} graphId={id} />;
  if (part === 'new' && id === undefined) return <EditorPage id={undefined} />;
  if (part === 'edit' && id !== undefined && more.length === 0) return <EditorPage key={id} id={id} />;
  return (
    <Page title={t('Graphs')}>
      <Empty title={t('Nothing at this address')} />
    </Page>
  );
}
