// The script of a report: turns its plots into charts.
import "./chart.css";
