/**
 * Help next to the page: what the page answers with the definition of each number, the keys, and the
 * documents. All of it comes with the page.
 */
import type { VNode } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { useTools } from '../../state/catalog';
import { MONITOR } from '../../state/capture';
import { useEscape } from '../../state/escape';
import { asApiError, useLoaded } from '../../state/payload';
import { run, tool } from '../../state/selection';
import { Document } from '../../widgets/document';
import { Failed, Loading } from '../../widgets/states';
import { documentOf, GLOSSARY, placeOf, readDocument, type Place } from './documents';
import { Keys } from './keys';
import { ThisPage } from './this_page';
import './style.css';

type Tab = 'page' | 'keys';
const TABS: readonly (readonly [Tab, string])[] = [
  ['page', 'This page'],
  ['keys', 'Keys'],
];

interface PageFacts {
  title: string;
  summary: string;
  path: string | undefined;
}

function usePageFacts(): PageFacts {
  const info = useTools(run.value).data?.tools.find(({ name }) => name === tool.value);
  if (tool.value === MONITOR) {
    return {
      title: 'Monitor',
      summary: 'Step time, idle time and input share of a job while it runs',
      path: 'capture.md',
    };
  }
  return info
    ? { title: info.title, summary: info.summary, path: documentOf(info.name) }
    : { title: 'this page', summary: 'Choose a run and a tool in the side bar', path: undefined };
}

/** The tabs; left and right move between them. */
function Tabs({ tab, id, onTab }: { tab: Tab; id: string; onTab: (tab: Tab) => void }): VNode {
  const list = useRef<HTMLDivElement>(null);
  const onKey = (event: KeyboardEvent): void => {
    if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return;
    event.preventDefault();
    onTab(tab === 'page' ? 'keys' : 'page');
  };
  useEffect(() => {
    if (list.current?.contains(document.activeElement))
      list.current.querySelector<HTMLElement>('[aria-selected="true"]')?.focus();
  }, [tab]);
  return (
    <div class="help-tabs" role="tablist" aria-label="Help" ref={list} onKeyDown={onKey}>
      {TABS.map(([name, title]) => (
        <button
          key={name}
          type="button"
          role="tab"
          id={`${id}-${name}`}
          aria-selected={tab === name}
          aria-controls={`${id}-panel`}
          tabIndex={tab === name ? 0 : -1}
          onClick={() => onTab(name)}
        >
          {title}
        </button>
      ))}
    </div>
  );
}

/** A document with a way back; a link with a heading scrolls to it. */
function OpenDocument({
  place,
  onPlace,
  onBack,
}: {
  place: Place;
  onPlace: (place: Place) => void;
  onBack: () => void;
}): VNode {
  const { data, error, retry } = useLoaded(place.path, '', () => readDocument(place.path));
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!data) return;
    const heading = place.heading && box.current?.querySelector(`[id="doc-${CSS.escape(place.heading)}"]`);
    if (heading) heading.scrollIntoView();
    else box.current?.scrollTo({ top: 0 });
  }, [data, place]);
  const onLink = (to: string): (() => void) | undefined => {
    const next = placeOf(place.path, to);
    return next ? () => onPlace(next) : undefined;
  };
  return (
    <div class="help-body" ref={box}>
      <button type="button" class="text-link help-back" onClick={onBack}>
        ← Back
      </button>
      {error && (
        <Failed
          what={place.path}
          kind="page"
          message="This document could not be loaded."
          remedy={`Reload TensorBoard. (${asApiError(error).message})`}
          onRetry={retry}
        />
      )}
      {!error && !data && <Loading what="Opening the document" bones={[18, 60, 60]} />}
      {data && <Document markdown={data} onLink={onLink} />}
    </div>
  );
}

function Footer({ page, onOpen }: { page: PageFacts; onOpen: (path: string) => void }): VNode {
  const { path } = page;
  return (
    <footer>
      {path && (
        <button type="button" class="text-link" onClick={() => onOpen(path)}>
          All about {page.title}
        </button>
      )}
      <button type="button" class="text-link" onClick={() => onOpen(GLOSSARY)}>
        Glossary
      </button>
      <small>Works offline</small>
    </footer>
  );
}

export function HelpPanel({ onClose }: { onClose: () => void }): VNode {
  const [tab, setTab] = useState<Tab>('page');
  const [trail, setTrail] = useState<readonly Place[]>([]);
  const id = useId();
  const panel = useRef<HTMLElement>(null);
  const page = usePageFacts();
  const place = trail.at(-1);
  useEscape(onClose);
  useEffect(() => setTrail([]), [tool.value]);
  useEffect(() => {
    const before = document.activeElement;
    panel.current?.querySelector<HTMLElement>('[role="tab"][aria-selected="true"]')?.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  const choose = (next: Tab): void => {
    setTrail([]);
    setTab(next);
  };
  return (
    <aside class="help" aria-label="Help" ref={panel}>
      <header>
        <h2>Help</h2>
        <button
          type="button"
          class="button plain"
          aria-label="Close help"
          data-tip="Close help  ?"
          onClick={onClose}
        >
          ×
        </button>
      </header>
      <Tabs tab={tab} id={id} onTab={choose} />
      {place ? (
        <OpenDocument
          place={place}
          onPlace={(next) => setTrail([...trail, next])}
          onBack={() => setTrail(trail.slice(0, -1))}
        />
      ) : (
        <div
          class="help-body"
          role="tabpanel"
          id={`${id}-panel`}
          aria-labelledby={`${id}-${tab}`}
          tabIndex={0}
        >
          {tab === 'page' ? <ThisPage summary={page.summary} path={page.path} /> : <Keys />}
        </div>
      )}
      <Footer page={page} onOpen={(path) => setTrail([...trail, { path, heading: '' }])} />
    </aside>
  );
}
