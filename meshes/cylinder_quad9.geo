// A channel of 2.2 × 0.41 with a cylinder of radius 0.05 at (0.2, 0.2), of Schäfer and Turek (1996), problem 2D-1.
// Nine-node quadrilaterals: gmsh -2 cylinder_quad9.geo -o cylinder_quad9.msh
n = 7;   // cells along a quarter of the circle
m = 7;   // cells from the circle to the square around it
l = 12;  // cells along the channel behind it
r = 0.05; s = r / Sqrt(2);
Point(1) = {0.2, 0.2, 0};
Point(2) = {0.2 - s, 0.2 - s, 0}; Point(3) = {0.2 + s, 0.2 - s, 0};
Point(4) = {0.2 + s, 0.2 + s, 0}; Point(5) = {0.2 - s, 0.2 + s, 0};
Point(6) = {0, 0, 0}; Point(7) = {0.41, 0, 0}; Point(8) = {0.41, 0.41, 0}; Point(9) = {0, 0.41, 0};
Point(10) = {2.2, 0, 0}; Point(11) = {2.2, 0.41, 0};
Circle(1) = {2, 1, 3}; Circle(2) = {3, 1, 4}; Circle(3) = {4, 1, 5}; Circle(4) = {5, 1, 2};
Line(5) = {6, 7}; Line(6) = {7, 8}; Line(7) = {8, 9}; Line(8) = {9, 6};
Line(9) = {2, 6}; Line(10) = {3, 7}; Line(11) = {4, 8}; Line(12) = {5, 9};
Line(13) = {7, 10}; Line(14) = {10, 11}; Line(15) = {8, 11};
Curve Loop(1) = {9, 5, -10, -1}; Plane Surface(1) = {1};
Curve Loop(2) = {10, 6, -11, -2}; Plane Surface(2) = {2};
Curve Loop(3) = {11, 7, -12, -3}; Plane Surface(3) = {3};
Curve Loop(4) = {12, 8, -9, -4}; Plane Surface(4) = {4};
Curve Loop(5) = {13, 14, -15, -6}; Plane Surface(5) = {5};
Transfinite Curve {1:8, 14} = n + 1;
Transfinite Curve {9:12} = m + 1 Using Progression 1.35;
Transfinite Curve {13, 15} = l + 1 Using Progression 1.12;
Transfinite Surface {1:5};
Recombine Surface {1:5};
Mesh.ElementOrder = 2;
Mesh.SecondOrderIncomplete = 0;
Mesh.MshFileVersion = 4.1;
Physical Curve("inlet") = {8};
Physical Curve("outlet") = {14};
Physical Curve("walls") = {5, 7, 13, 15};
Physical Curve("cylinder") = {1:4};
Physical Surface("fluid") = {1:5};
