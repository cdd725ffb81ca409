// The views, in the order of the navigation.

import type { Component } from "svelte";

import ExperimentsView from "../experiments/ExperimentsView.svelte";
import FlowsView from "../flows/FlowsView.svelte";
import HistoryView from "../history/HistoryView.svelte";
import IsolationView from "../isolation/IsolationView.svelte";
import NetworkView from "../network/NetworkView.svelte";
import RecordsView from "../records/RecordsView.svelte";
import TasksView from "../tasks/TasksView.svelte";
import TransfersView from "../transfers/TransfersView.svelte";

export interface View {
  /** The first part of the address. */
  id: string;
  title: string;
  component: Component;
}

export const VIEWS: View[] = [
  { id: "network", title: "Network", component: NetworkView },
  { id: "flows", title: "Flows", component: FlowsView },
  { id: "isolation", title: "Isolation", component: IsolationView },
  { id: "tasks", title: "Tasks", component: TasksView },
  { id: "records", title: "Records", component: RecordsView },
  { id: "transfers", title: "Transfers", component: TransfersView },
  { id: "experiments", title: "Experiments", component: ExperimentsView },
  { id: "history", title: "History", component: HistoryView },
];
