import { t } from '../../language.ts';
import { useLoad } from '../../data/use-load.ts';
import { Markdown } from '../../markdown/markdown.tsx';
import { PageLink } from '../../ui/link.tsx';
import { Empty, Failure, Page, Skeleton } from '../../ui/parts.tsx';
import { type GuideName, guides, isGuide, shownText } from './guides.ts';

/** The guide of a page, from the documentation of this version: `/help/<name>`. */
export function HelpPage({ name }: { readonly name: string | undefined }) {
  if (name === undefined || !isGuide(name))
    return (
      <Page title={t('Help')}>
        <GuideList current={undefined} />
      </Page>
    );
  return <Guide key={name} name={name} />;
}

function Guide({ name }: { readonly name: GuideName }) {
  const { data, error, reload } = useLoad(['guide', name], async () => shownText((await guides[name].load()).default));
  return (
    <Page title={guides[name].title} lead={t('From the guide of this version.')}>
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {data === undefined && error === undefined && <Skeleton lines={8} />}
      {data === '' ? <Empty title={t('Nothing here')} /> : data !== undefined && <Markdown text={data} />}
      <GuideList current={name} />
    </Page>
  );
}

function GuideList({ current }: { readonly current: GuideName | undefined }) {
  return (
    <nav aria-label={t('Guides')}>
      <h2>{t('Guides')}</h2>
      <ul>
        {Object.entries(guides).map(([name, { title }]) => (
          <li key={name}>
            <PageLink to={`/help/${name}`} current={name === current}>
              {title}
            </PageLink>
          </li>
        ))}
      </ul>
    </nav>
  );
}
